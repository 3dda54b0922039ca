"""Commands that start an archive."""
