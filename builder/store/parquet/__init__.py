"""Parquet files; the only package that imports pyarrow."""
