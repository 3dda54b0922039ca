"""Strategies: how the files of a dataset are kept; one file each."""
