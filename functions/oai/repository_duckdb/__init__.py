"""The repository over DuckDB."""
