"""Copies of a whole store at another place."""
