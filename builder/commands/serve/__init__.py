"""Commands that serve an archive, and tell of it."""
