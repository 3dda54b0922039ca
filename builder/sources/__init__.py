"""Sources: a stream of bytes in, captures and faults out. No paths, no store, no clock.

To add a form of archive file: let `recognise` know its first bytes, yield the events of `events`
in a module here, call it in `webarchive`, and say in builder.ingest.splits whether ranges of a file
can be read. Indexes (CDX) are read in builder.ingest.cdx, and ReDIF in `redif`;
builder.redif.source.sort_sources and builder.ingest.split_reader tell the kinds of input apart.
"""
