"""Readers of capture indexes in SQL, many lines at a time."""
