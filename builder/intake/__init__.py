"""Intake: rows that an ingest wrote, and that the next publish merges into the snapshot."""
