"""URLs: authorities, endpoints and sort-friendly forms."""
