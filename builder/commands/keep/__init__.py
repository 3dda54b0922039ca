"""Commands that keep an archive."""
