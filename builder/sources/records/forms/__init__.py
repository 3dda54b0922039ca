"""Forms of files of metadata."""
