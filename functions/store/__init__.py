"""Read access to a store, and to its tables by DuckDB. builder.store also writes."""
