"""Local HTTP server."""
