"""Dialects of the index of captures: what pywb's server and the Internet Archive's do differently.

Each has a path of its own, so that the clients of both find the answers that they parse.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """A server's ways: names of forms by their `output`, and the one without `output`.

    `is_whole`: a filter without a sign is an expression for the whole value of any field. `since`
    is the least date of what is listed. `is_silent`: a page behind the last one is empty, where it
    is refused otherwise, and the number of pages is a number alone.
    """

    outputs: Mapping[str, str]
    output: str
    is_whole: bool = False
    since: int = 0
    is_silent: bool = False


PYWB = Dialect({name: name for name in ("cdxj", "json", "text", "cdx")}, "cdxj")
# Its clients parse the date of each line, so captures without one are not listed.
ARCHIVE = Dialect(
    {"text": "text", "json": "array", "cdxj": "cdxj", "cdx": "cdx"},
    "text",
    is_whole=True,
    since=1,
    is_silent=True,
)

DIALECTS: Mapping[str, Dialect] = {"/cdx": PYWB, "/cdx/search/cdx": ARCHIVE}
"""The dialect that is spoken at each path."""
