"""Dialects of the index of captures: differences of pywb's and the Internet Archive's servers.

Each dialect has its own path, so that the clients of both get answers that they can parse.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """A server's behaviour: output formats by the value of `output`, and the default format.

    With `is_whole`, a filter without an operator is an expression for the whole value. `since` is
    the earliest date that is listed. With `is_silent`, a page behind the last one is empty instead
    of an error, and the page count is a bare number.
    """

    outputs: Mapping[str, str]
    output: str
    is_whole: bool = False
    since: int = 0
    is_silent: bool = False


PYWB = Dialect({name: name for name in ("cdxj", "json", "text", "cdx")}, "cdxj")
# Its clients parse the date of each line, so captures without a date are not listed.
ARCHIVE = Dialect(
    {"text": "text", "json": "array", "cdxj": "cdxj", "cdx": "cdx"},
    "text",
    is_whole=True,
    since=1,
    is_silent=True,
)

DIALECTS: Mapping[str, Dialect] = {"/cdx": PYWB, "/cdx/search/cdx": ARCHIVE}
"""The dialect of each path."""
