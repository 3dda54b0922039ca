"""Why there are no bytes: each reason with the HTTP status that tells it (RFC 9110, section 15)."""

from collections.abc import Mapping

from functions.snapshot.errors import SheafError

STATUSES: Mapping[str, int] = {
    "unknown": 404,  # no item has that identifier, or it has no such file
    "withdrawn": 410,  # the item was taken down; nothing of it is told but that
    "no-content": 404,  # the item has no bytes of its own: a collection, a paper without a file
    "elsewhere": 404,  # the bytes lie at another service, archive.org say
    "unplaced": 404,  # a capture whose record has no place of its own in its file, or none known
    "unresolved": 404,  # a revisit whose original is not known, or has no bytes
    "not-held": 404,  # nothing of that time
    "not-at-hand": 503,  # the archive file is not where it was said to lie
    "damaged": 502,  # the archive file has other bytes there than the record names
    "undecodable": 406,  # a coding that cannot be undone here; the bytes as stored can be had
}
"""What each code is told by. What is 404 or 410 is so for good, in this snapshot."""


class ContentError(SheafError):
    """There are no bytes, by one of the codes of STATUSES; the text is one line for a person."""

    def __init__(self, code: str, detail: str) -> None:
        """Raises KeyError for a code that is none."""
        super().__init__(detail)
        self.code = code
        self.status = STATUSES[code]
