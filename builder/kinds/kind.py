"""The shape of a kind of item: what it does in a publish, a withdrawal and a reinstatement."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from builder.obi.history import Committed
from builder.snapshot.draft import Draft, Query
from builder.snapshot.transaction import Transaction
from functions.database import engine


@dataclass(slots=True)
class KindChange:
    """A change of a store that is being built, and what the kinds give to it.

    Versions go to the tables `prepared_versions` and `superseded_versions` of
    builder.snapshot.scratch_tables. `files` returns the intake's files of a table, the earliest
    run's first. `runs` are all runs of the obi store, if some of them are new. `has_sources` tells
    whether `added_sources` has archive files that were read.

    Kinds add: by table, a query of further rows of `provenance`; by kind, queries of the versions
    whose content is not in `prepared_versions`, by identifier; and `fields` of the next manifest.
    They set `has_rows` where tables beside those of the items may differ, so that there is a new
    snapshot even if no item changes.
    """

    base: Transaction
    connection: engine.Connection
    draft: Draft
    files: Callable[[str], list[str]] = lambda table: []
    runs: Sequence[Committed] = ()
    has_sources: bool = False
    has_rows: bool = False
    provenance: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Iterator[Query]] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KindCounts:
    """Numbers of items: new ones, changed ones, deleted ones among these, and unchanged ones.

    `copies` are further copies of one item. `moved` items changed because others did, `restated`
    ones because their documents count others.
    """

    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    copies: int = 0
    moved: int = 0
    restated: int = 0

    def __add__(self, other: "KindCounts") -> "KindCounts":
        return KindCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))


Step = Callable[[KindChange], KindCounts]
Effect = Callable[[KindChange], None]


def _count_nothing(change: KindChange) -> KindCounts:
    return KindCounts()


def _do_nothing(change: KindChange) -> None:
    return None


def _show_nothing(connection: engine.Connection, draft: Draft, wanted: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of item. What it does not need, it leaves out. Steps raise StoreError.

    A publish calls `check`, which raises ConfigurationError before any work is done; then `gather`,
    which reads what is new of the kind; then `settle`, after files that were read are known; then
    `revise`. A withdrawal and a reinstatement call `settle` for the items
    that depend on others. `inherit` adds to `item_versions` what has metadata of the items there;
    `scrub` removes it from the kind's own tables. `recover` adds to `recovered_versions`, and
    `reinstate` brings the kind's own tables up to date. `shows` tells whether a draft's tables
    beside the records hold metadata of the items in a table of identifiers.
    """

    check: Effect = _do_nothing
    gather: Step = _count_nothing
    settle: Step = _count_nothing
    revise: Step = _count_nothing
    inherit: Effect = _do_nothing
    scrub: Effect = _do_nothing
    recover: Effect = _do_nothing
    reinstate: Effect = _do_nothing
    shows: Callable[[engine.Connection, Draft, str], bool] = _show_nothing
