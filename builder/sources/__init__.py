"""Sources: a stream of bytes in, captures and faults out. No paths, no store, no clock.

To add a form of archive file, add its first bytes to `recognise`, and a module here that yields
the events of `events`. Call it in `webarchive`. builder.ingest.splits must know whether ranges of a
file can be read. Indexes (CDX) are read in builder.ingest.cdx, and ReDIF in `redif`;
builder.redif.source.sort_sources and builder.ingest.split_reader distinguish the kinds of input.
"""
