"""Why a file is not restored, or not all of it: what has no bytes, and what has no place."""

from collections.abc import Mapping

from functions.content.errors import STATUSES
from functions.snapshot.errors import SheafError

CODES: Mapping[str, str] = {
    "in-the-way": "something that no restore put there, or a link, lies where it belongs",
    "too-large": "it is larger than --max-bytes",
    "cut-short": "the connection ended before it did, or nothing came any more",
    "refused": "the endpoint answered for it what it should not",
    "no-room": "the disk cannot hold it, or it may not be written there",
}
"""Codes of a restore's own; those of functions.content.errors.STATUSES are told besides."""


class RebuildError(SheafError):
    """A site cannot be restored, or nothing more of it."""


class MissingError(RebuildError):
    """A file cannot be restored, by a code of CODES or of STATUSES; the text says more."""

    def __init__(self, code: str, detail: str) -> None:
        """Raises KeyError for a code that is none."""
        super().__init__(detail)
        self.code = code
        if code not in CODES:
            STATUSES[code]
