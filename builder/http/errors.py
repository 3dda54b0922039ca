"""Failures: why a file could not be had."""

import re

from functions.snapshot.errors import SheafError

_LONGEST = 300
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class NotHad(SheafError):
    """A file could not be had; `code` is one of builder.http.outcomes.

    `retry_after` is how many seconds the server asks to be left alone.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = _UNSEEN.sub(" ", detail).strip()[:_LONGEST]  # servers have their say in it
        self.status = status
        self.retry_after = retry_after

    def told(self) -> "NotHad":
        """Return it as one that was not raised yet, to be kept, or raised more than once.

        One that was keeps every frame that it came through, each time that it is raised.
        """
        return NotHad(self.code, self.detail, self.status, self.retry_after)


class Deferred(SheafError):
    """It is not to be tried now: a host is to be left alone, or the work was ended."""
