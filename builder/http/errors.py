"""Errors of the HTTP client."""

import re

from functions.snapshot.errors import SheafError

_LONGEST = 300
_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class FetchError(SheafError):
    """A URL could not be fetched; `code` is one of builder.http.outcomes.

    `retry_after` is the wait in seconds that the server asks for.
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
        self.detail = _UNPRINTABLE.sub(" ", detail).strip()[:_LONGEST]  # may be a server's text
        self.status = status
        self.retry_after = retry_after

    def copy(self) -> "FetchError":
        """Return an equal error without a traceback, to be stored or raised again.

        A raised error keeps the stack frames of each raise, with all their objects.
        """
        return FetchError(self.code, self.detail, self.status, self.retry_after)


class Deferred(SheafError):
    """The request must wait: its host is resting, or the work was stopped."""
