"""Snapshots: tables, drafts, commit, expiry and recovery."""
