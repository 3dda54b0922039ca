"""Indexes of web archives: one line at a time, and in SQL many lines at a time."""
