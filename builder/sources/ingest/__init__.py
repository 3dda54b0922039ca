"""Ingest: reads archive files and indexes (builder.sources), and writes runs of the intake.

`ingest` plans the work, and `split_reader` reads one split in a process of the pool. For many
machines, `plan` keeps chunks of splits in the store, `parts` reads and commits them, and `engines`
runs that on a cluster; to add an engine, see there.
"""
