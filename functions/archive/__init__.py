"""Archive files, ARC and WARC: records, their heads and their payloads. No paths, and no clock."""
