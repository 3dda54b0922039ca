"""Sources: a stream of bytes in, captures and faults out. No paths, no store, no clock.

To add a form of archive file: let `recognise` know its first bytes, yield the events of `events`
in a module here, and call it in `webarchive`. Indexes (CDX) are read in builder.ingest.cdx, and
templates in `redif`.
"""
