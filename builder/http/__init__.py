"""The HTTP client of the builder: polite, bounded, and confined to public addresses."""
