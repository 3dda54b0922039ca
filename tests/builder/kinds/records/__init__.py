"""Tests of builder.kinds.records."""
