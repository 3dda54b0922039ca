"""The shape of a kind of item: what it does in a publish, a withdrawal and a reinstatement."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, ClassVar, Literal

from builder.obi.history import Committed
from builder.runtime import Advance
from builder.snapshot.audit import StoreAudit
from builder.snapshot.draft import Draft, SortedRows
from builder.snapshot.transaction import Transaction
from builder.store.copier import Stage
from builder.store.findings import Finding
from functions.snapshot.store import Writer
from functions.store import engine


@dataclass(slots=True)
class KindChange:
    """A change of a store that is being built, and what the kinds give to it.

    Versions go to the tables `prepared_versions` and `superseded_versions` of
    builder.snapshot.scratch_tables. `files` returns the intake's files of a table, the earliest
    run's first. `runs` are all runs of the obi store, if some of them are new. `has_sources` tells
    whether `added_sources` has archive files that were read.

    Kinds add: by table, a query of further rows of `provenance`; by kind, the versions whose
    content is not in `prepared_versions`, sorted; and `fields` of the next manifest.
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
    rows: dict[str, Iterator[SortedRows]] = field(default_factory=dict)
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


@dataclass
class KindAudit(ABC):
    """A check of what a kind keeps beside its records, which it lists when it begins.

    `count` is how many there are of its `nouns` (singular and plural), `objects` how many objects
    these should have, `read` how many were read, and `bytes` what is to be read. `keys` name count,
    objects and read ones in a document.
    """

    audit: StoreAudit
    count: int = 0
    objects: int = 0
    read: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    nouns: ClassVar[tuple[str, str]]
    keys: ClassVar[tuple[str, str, str]]

    @property
    def store(self) -> Writer:
        """The store that is checked."""
        return self.audit.store

    @abstractmethod
    def finish(self, advance: Advance) -> None:
        """Read the chosen objects, and add findings on their content."""


Step = Callable[[KindChange], KindCounts]
Effect = Callable[[KindChange], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of item. What it does not need, it leaves out. Steps raise StoreError.

    A publish calls `check`, which raises ConfigurationError before any work is done; then `gather`,
    which reads what is new of the kind; then `settle`, after files that were read are known; then
    `revise`. A withdrawal and a reinstatement call `settle` for the items that depend on others.
    `inherit` adds to `item_versions` what has metadata of the items there; `scrub` removes it from
    the kind's own tables. `recover` adds to `recovered_versions`, and `reinstate` brings the kind's
    own tables up to date. `shows` tells whether a draft's tables beside the records hold metadata
    of the items in a table of identifiers.

    `verify` checks what the kind keeps beside its records. Such objects lie below the prefixes
    `copied`; `list_copied` yields them in the order of reference, for a copy of the store. `names`
    are those of the kind in the column `kind` of records. Items that `follow` others are not
    withdrawn themselves: it says why. Others are counted apart in a preview if `counted` has a key,
    the singular and the plural. Their `identifiers` have the namespace as their prefix ("own"), end
    in a handle, or are those of other repositories ("foreign").
    """

    names: tuple[str, ...]
    identifiers: Literal["own", "handle", "foreign"] = "own"
    check: Effect = lambda change: None
    gather: Step = lambda change: KindCounts()
    settle: Step = lambda change: KindCounts()
    revise: Step = lambda change: KindCounts()
    inherit: Effect = lambda change: None
    scrub: Effect = lambda change: None
    recover: Effect = lambda change: None
    reinstate: Effect = lambda change: None
    shows: Callable[[engine.Connection, Draft, str], bool] = lambda connection, draft, table: False
    verify: Callable[[StoreAudit], KindAudit] | None = None
    copied: tuple[str, ...] = ()
    list_copied: Callable[[Writer], Iterable[Stage]] = lambda source: ()
    follow: str = ""
    counted: tuple[str, str, str] | None = None
