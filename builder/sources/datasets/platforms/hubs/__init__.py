"""Platforms that host code and models, with their data: revisions and releases are versions."""
