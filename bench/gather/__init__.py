"""Benchmarks of gathering full texts."""
