"""Which pages of a list hold the records of which sets, so that these can share them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from builder.outputs.site.chain import PageChain, is_shareable

SetPlan = Mapping[datetime, Sequence[int]]
"""The datestamps with which a set has records, and the pages of the list of all records that it
shares there; none if it has its own."""


@dataclass(slots=True)
class SetShare:
    """The records of a set in the pages `firsts` of one datestamp."""

    records: int = 0
    firsts: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SetPages:
    """The pages of a list behind a position, by set and datestamp.

    `left` has the datestamps with which items left a set. In its list they are deleted then, and
    live in that of all records, so that no page can be shared. None is unless `is_sharing`.
    """

    shares: Mapping[str, Mapping[datetime, SetShare]]
    left: Mapping[str, Collection[datetime]]
    limit: int
    is_sharing: bool

    def list_specs(self) -> Sequence[str]:
        """Return the sets that have records here, sorted."""
        return sorted({*self.shares, *self.left})

    def plan(self, spec: str, chain: PageChain) -> SetPlan:
        """Return the pages that a set shares, whose list is `chain` so far."""
        left = self.left.get(spec, ())
        plan: dict[datetime, Sequence[int]] = dict.fromkeys(left, ())
        earlier = len(chain.shared)
        for stamp, share in self.shares.get(spec, {}).items():
            pages = share.firsts if self.is_sharing and stamp not in left else ()
            if not is_shareable(share.records, len(pages), earlier, self.limit):
                pages = ()
            plan[stamp] = pages
            earlier += len(pages)
        return plan
