"""Reasons why a file is not restored, or not completely: missing bytes, or no place for it."""

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
