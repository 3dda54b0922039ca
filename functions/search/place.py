"""Places: where a search continues, as text in an address."""

import re
from dataclasses import dataclass

from functions.search import words
from functions.search.query import SearchQueryError

EVERY = words.SITE + 1
"""Above the ranks: the place is in all of them at once, because there are few candidates."""
_TEXT = re.compile(r"\d{1,2}\.\d{1,18}(\.\d{1,18}){0,3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """A place in the order of hits: by rank, then window, then points, then position.

    A window is the positions from `low` to `high`, whose hits were sorted together. The search
    continues behind the hit of the window with `points` and `position`, or with a new window from
    `high` down if these are 0. Positions stay, so a place is valid in later snapshots.
    """

    rank: int
    high: int
    low: int = 1
    points: int = 0
    position: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """What the hit behind which it continues was sorted by."""
        return self.points, self.position

    def to_text(self) -> str:
        """Return it as text."""
        return f"{self.rank}.{self.high}.{self.low}.{self.points}.{self.position}"


def parse_place(text: str) -> SearchPlace:
    """Return the place that `to_text` wrote. Raises SearchQueryError."""
    if not _TEXT.fullmatch(text):
        raise SearchQueryError("place")
    place = SearchPlace(*map(int, text.split(".")))
    if place.rank > EVERY:
        raise SearchQueryError("place")
    return place
