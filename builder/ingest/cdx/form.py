"""Recognising an index by its first bytes."""

import re

from builder.sources import cdx, recognise

_SECONDARY = re.compile(
    rb"(?:![^\n]*\n)*[^\t\n]+ \d{14}[^\t\n]*\t[^\t\n]+\t\d+\t\d+(?:\t\d+)?\r?(?:\n|$)"
)
"""A line of it: sort key, name of a part, offset, length, and number."""


def find_form(head: bytes) -> str | None:
    """Return "cdx" or "cdxj" by a file's first bytes, with ".gz" for gzip; None for other files."""
    is_gzip = recognise.is_gzip(head)
    text = recognise.inflate_head(head) if is_gzip else head
    form = "cdxj" if cdx.is_cdxj(text) else "cdx" if cdx.is_cdx(text) else None
    return form and form + (".gz" if is_gzip else "")


def is_secondary(head: bytes) -> bool:
    """Return whether these first bytes are of a ZipNum's secondary index, which is not needed."""
    return _SECONDARY.match(head) is not None
