"""Harvests from data files: what Identify offers, the walk over them, and their rows."""
