"""Verify: a store held against its own manifests, logs and records."""
