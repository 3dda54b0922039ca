"""ARC and WARC files. No paths, no clock.

`stream` (with `gzip_members` or `zstd_frames`) cuts a file into records, `record_header` parses
WARC and ARC headers, and `message` the HTTP head behind them. `record_reader` reads one record at
an offset. `zip_directory` finds files in a WACZ.
"""
