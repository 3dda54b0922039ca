"""Verification: checks a store against its own manifests, logs and records."""
