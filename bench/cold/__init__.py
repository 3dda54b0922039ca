"""Benchmark of the packed function: cold starts, and requests to the bucket."""
