"""Web archives and their indexes: a stream of bytes in, captures and faults out.

The modules here know no paths, stores or clocks. `cdx` reads indexes, `remote` opens files of
buckets and servers, and `ingest` writes what is read to the intake.

To add a form of archive file, add its first bytes to `recognise`, and a module that yields the
events of `events`; call it in `webarchive`. `ingest.splits` must know whether ranges of a file can
be read.
"""
