"""Fileset ingest: reads requests for datasets, stores verified files, and writes results."""
