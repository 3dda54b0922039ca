"""Reasons why a file is not restored, or not completely: missing bytes, or no place for it."""

from collections.abc import Mapping

from functions.content.errors import STATUSES
from functions.snapshot.errors import SheafError

CODES: Mapping[str, str] = {
    "in-the-way": "a link, or a file that no restore wrote, is in its place",
    "too-large": "it is larger than --max-bytes",
    "cut-short": "the connection ended early, or no more bytes arrived",
    "refused": "the endpoint sent an unexpected response",
    "no-room": "the disk is full, or writing is not permitted",
}
"""Codes of a restore itself; those of functions.content.errors.STATUSES are reported as well."""


class RebuildError(SheafError):
    """A site cannot be restored, or the restore cannot continue."""


class MissingError(RebuildError):
    """A file cannot be restored. The code is one of CODES or STATUSES; the text gives details."""

    def __init__(self, code: str, detail: str) -> None:
        """Raises KeyError for an unknown code."""
        super().__init__(detail)
        self.code = code
        if code not in CODES:
            STATUSES[code]
