"""Cursor in a list of sets: where the next page begins."""

import re
from dataclasses import dataclass

from functions.snapshot import setspec

LIVE, EMPTIED, NAMED = range(3)
"""Stages of a list: sets with live records, sets without, sets that are only configured."""

_MARKS = "+/="  # characters that no setSpec contains
_PLACE = re.compile(r"(0|[1-9][0-9]{0,9})([+/=])(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SetCursor:
    """Position behind the set `spec` in a stage of a list; the list began at publish `sequence`."""

    sequence: int
    stage: int
    spec: str

    def to_text(self) -> str:
        """Return the cursor as text for a token."""
        return f"{self.sequence}{_MARKS[self.stage]}{self.spec}"

    @staticmethod
    def from_text(text: str) -> "SetCursor | None":
        """Parse the text of `to_text`; None if it is invalid."""
        match = _PLACE.fullmatch(text)
        if match is None or not setspec.is_valid(match[3]):
            return None
        return SetCursor(int(match[1]), _MARKS.index(match[2]), match[3])
