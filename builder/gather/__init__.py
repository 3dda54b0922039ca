"""Gathering: fetches the files that templates refer to, and records the results."""
