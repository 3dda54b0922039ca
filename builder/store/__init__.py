"""Stores that the builder writes: a folder or a bucket. functions.store only reads."""
