"""Reasons why content is unavailable, each with its HTTP status (RFC 9110, section 15)."""

from collections.abc import Mapping

from functions.snapshot.errors import SheafError

STATUSES: Mapping[str, int] = {
    "unknown": 404,  # no item has that identifier, or the item has no such file
    "withdrawn": 410,  # the item was taken down; the answer says nothing else about it
    "no-content": 404,  # the item has no bytes of its own: a collection, a paper without a file
    "elsewhere": 404,  # the bytes are at another service, such as archive.org
    "unplaced": 404,  # the capture's record has no known place of its own in its file
    "unresolved": 404,  # a revisit whose original is unknown or has no bytes
    "not-held": 404,  # no version of that time
    "not-at-hand": 503,  # the archive file is not at its recorded place
    "damaged": 502,  # the archive file has other bytes there than the record declares
    "undecodable": 406,  # a coding that Sheaf cannot decode; the bytes as stored are available
}
"""HTTP status of each code. 404 and 410 are final within this snapshot."""


class ContentError(SheafError):
    """Content is unavailable; `code` is a key of STATUSES, and the text is a one-line message."""

    def __init__(self, code: str, detail: str) -> None:
        """Raises KeyError for an unknown code."""
        super().__init__(detail)
        self.code = code
        self.status = STATUSES[code]
