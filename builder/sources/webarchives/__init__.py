"""Web archives and their indexes: a stream of bytes in, captures and faults out.

Nothing here knows paths, stores or clocks. To add a form of archive file, add its first bytes to
`recognise`, and a module that yields the events of `events`; call it in `webarchive`.
builder.sources.ingest.splits must know whether ranges of a file can be read.
"""
