"""Full-text search of the published metadata."""
