"""The HTTP client of the builder: polite, bounded, and kept away from private addresses."""
