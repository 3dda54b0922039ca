"""Errors of harvesting, each with one line for a person."""

from functions.snapshot.errors import SheafError


class HarvestError(SheafError):
    """A repository could not be harvested, or a folder of harvests is not what it was."""


class Broken(HarvestError):
    """An answer is no OAI-PMH, or no XML; the text says why. `unbound` tells of prefixes."""

    def __init__(self, text: str, unbound: bool = False) -> None:
        super().__init__(text)
        self.unbound = unbound


class Unanswered(HarvestError):
    """A request had no answer that is of use, also after all that was tried.

    `status` is that of HTTP where there was one; `later` says that nothing can be asked now.
    """

    def __init__(self, text: str, status: int | None = None, later: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.later = later


class RefusedError(HarvestError):
    """The repository answered with an error of OAI-PMH (3.6); `code` is the first one's."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}" if text else code)
        self.code = code
