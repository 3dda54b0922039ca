"""Indexes of captures read by SQL, many lines at a time."""
