"""Errors of harvesting; each message is one line for the user."""

from functions.snapshot.errors import SheafError


class HarvestError(SheafError):
    """A repository could not be harvested, or a harvest folder is damaged."""


class Broken(HarvestError):
    """A response is not OAI-PMH or not XML; the text gives the reason.

    `unbound` is true if the cause is an undeclared prefix.
    """

    def __init__(self, text: str, unbound: bool = False) -> None:
        super().__init__(text)
        self.unbound = unbound


class Unanswered(HarvestError):
    """A request had no usable response, even after all retries.

    `status` is the HTTP status, if there was one. With `later` the repository is unavailable at
    present.
    """

    def __init__(self, text: str, status: int | None = None, later: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.later = later


class RefusedError(HarvestError):
    """The repository answered with an OAI-PMH error (section 3.6); `code` is the first code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
