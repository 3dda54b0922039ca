"""Restoring: a site out of the archive, as files of a folder."""
