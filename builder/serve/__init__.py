"""Local HTTP server of `sheaf serve`: connections, workers, their shared cache, access log."""
