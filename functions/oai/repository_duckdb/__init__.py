"""OAI-PMH repository implemented with DuckDB."""
