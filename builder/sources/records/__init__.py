"""Own records: files of metadata that libraries and repositories have."""
