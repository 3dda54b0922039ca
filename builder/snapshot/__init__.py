"""Snapshots: their tables, how one is drafted and committed, expiry and recovery."""
