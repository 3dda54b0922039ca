"""Ingest: reads archive files and indexes (builder.sources), and writes runs of the intake.

`ingest` plans the work, and `split_reader` reads one split in a process of the pool.
"""
