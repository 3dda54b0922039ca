"""Ingest of web archives and indexes into runs of the intake, by one machine or many.

`ingest` plans the work, and `split_reader` reads one split in a process of the pool. For many
machines, `plan` keeps chunks of splits in the store, `parts` reads and commits them, and `engines`
runs that on a cluster; to add an engine, see there.
"""
