"""Pages of the captures of a URL, host or domain: their list and their calendar."""
