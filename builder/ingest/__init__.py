"""Ingest: reads archive files and indexes, and writes runs of the intake."""
