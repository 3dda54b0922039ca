"""ARC and WARC files: records, their headers and payloads. No paths, no clock."""
