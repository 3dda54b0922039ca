"""Commands that make an archive."""
