"""Benchmarks of an ingest by many machines."""
