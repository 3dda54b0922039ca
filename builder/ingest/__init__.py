"""Ingest: archive files and indexes in, runs of the intake out."""
