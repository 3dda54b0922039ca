"""Restore of a site from the archive into files of a folder."""
