"""Parquet files: the only room that knows pyarrow."""
