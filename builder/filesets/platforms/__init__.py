"""Platforms: who hosts a dataset; one file each."""
