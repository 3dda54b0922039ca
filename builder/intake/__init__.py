"""Intake: rows that ingests wrote and the next publish reads."""
