"""Readers for platforms' metadata, in DataCite's terms."""
