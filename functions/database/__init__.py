"""DuckDB: connections, files and columns."""
