"""Platforms that host datasets, one module each."""
