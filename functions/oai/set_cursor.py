"""Places: where in a list of sets its next page begins."""

import re
from dataclasses import dataclass

from functions.snapshot import setspec

LIVE, EMPTIED, NAMED = range(3)
"""The stages of a list: sets with live records, sets without, sets that are only configured."""

_MARKS = "+/="  # none of which a setSpec can have
_PLACE = re.compile(r"(0|[1-9][0-9]{0,9})([+/=])(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SetCursor:
    """Behind the set `spec` in a stage of the list that began as of the publish `sequence`."""

    sequence: int
    stage: int
    spec: str

    def to_text(self) -> str:
        """Return the place as a token has it."""
        return f"{self.sequence}{_MARKS[self.stage]}{self.spec}"

    @staticmethod
    def from_text(text: str) -> "SetCursor | None":
        """Read what `to_text` wrote; None for the rest."""
        match = _PLACE.fullmatch(text)
        if match is None or not setspec.is_valid(match[3]):
            return None
        return SetCursor(int(match[1]), _MARKS.index(match[2]), match[3])
