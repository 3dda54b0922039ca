"""State of a harvest: its request, its progress, and the results of its runs. Pure.

A state is a JSON document (folder.STATE). All times are UTC; datestamps are as the repository has
them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from builder.sources.harvest.errors import HarvestError
from builder.sources.harvest.version import Sight
from builder.store import documents
from functions.snapshot.errors import describe_failure

VERSION = 1
DAY = "YYYY-MM-DD"
SECOND = "YYYY-MM-DDThh:mm:ssZ"
_RUNS = 50
_NOTES = 20
_RISES = 5
LOST = 1000
"""Number of lost records that are named; further ones are only counted."""
COMPLETE, PARTIAL, GIVEN_UP = "complete", "partial", "given up"


@dataclass(slots=True)
class Counts:
    """Counts of a run: each item is `new`, `changed` or the `same` as in an earlier run.

    `another` counts further versions of one item in the run. `again` counts versions that were
    received before in the run and not stored again. `deleted` and `mended` count stored versions,
    and `lost` those that could not be received. `outside` counts records with datestamps outside
    the requested dates; `later` those with datestamps after the beginning of the list. `bare`
    counts stored versions without metadata, and `removed` items that ended because the repository
    no longer lists them.
    """

    pages: int = 0
    new: int = 0
    changed: int = 0
    deleted: int = 0
    same: int = 0
    another: int = 0
    again: int = 0
    mended: int = 0
    lost: int = 0
    outside: int = 0
    later: int = 0
    bare: int = 0
    removed: int = 0

    def add(self, sight: Sight) -> None:
        """Count a version."""
        setattr(self, sight.value, getattr(self, sight.value) + 1)

    @property
    def distinct(self) -> int:
        """Number of items received."""
        return self.new + self.changed + self.same


@dataclass(slots=True)
class RunState:
    """State of an unfinished run: its request, and its position in the list.

    `since` and `until` are the dates of the run, `begin` is the start date of the present list;
    each may be None. `dated` is the first responseDate received. `high` is the latest datestamp
    received, `last` the last one of the present list.
    `ordered` is true while no datestamp was earlier than the one before. `rises` counts the
    datestamps that were later than the one before.
    `gained` counts items received since the last break of the list. `stage` counts breaks in a row
    with nothing gained. `fell` is true if a list then began at a datestamp, `rewound` if it began
    again at the start. `remade` is true if the index of seen items was rebuilt.
    `owed` are records lost in the run before, each with the reason; they are still to be requested.
    `idle` counts pages in a row that brought nothing, and `mark` is the fingerprint of one of them.
    `bad` is the latest datestamp of a lost record. `bare` are items that came without metadata.
    `behind` counts the pages before the present list. `abrupt` is true if a token led to nothing.
    `former` is the instant at which the walk before began: what has an earlier datestamp should be
    known. `late` counts records for which this is wrong, `lag` is the largest delay among them in
    seconds. `reach` is the overlap with earlier runs in seconds, 0 if it may not be widened.
    """

    number: int
    started: str
    since: str | None = None
    until: str | None = None
    asked: tuple[str | None, str | None] = (None, None)
    full: bool = False
    began: str | None = None
    dated: str = ""
    verb: str = "ListRecords"
    begin: str | None = None
    token: str | None = None
    size: int | None = None
    high: str = ""
    last: str = ""
    ordered: bool = True
    rises: int = 0
    gained: int = 0
    stage: int = 0
    fell: bool = False
    rewound: bool = False
    remade: bool = False
    idle: int = 0
    mark: str = ""
    bad: str = ""
    behind: int = 0
    abrupt: bool = False
    former: str = ""
    late: int = 0
    lag: float = 0.0
    reach: float = 0.0
    counts: Counts = field(default_factory=Counts)
    owed: list[tuple[str, str]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_in_order(self) -> bool:
        """Whether lists are in the order of datestamps; with fewer rises this may be chance."""
        return self.ordered and self.rises >= _RISES

    def note(self, text: str) -> None:
        """Store a remark for the report, once, up to a maximum number."""
        if text not in self.notes and len(self.notes) < _NOTES:
            self.notes.append(text)

    def lose(self, identifier: str, why: str) -> None:
        """Store a lost record, once."""
        if identifier and identifier in dict(self.lost):
            return
        self.counts.lost += 1
        if len(self.lost) < LOST:
            self.lost.append((identifier, why))

    def find(self, identifier: str) -> None:
        """Remove a received record from the lost ones."""
        if self.lost and identifier in dict(self.lost):
            self.lost = [lost for lost in self.lost if lost[0] != identifier]
            self.counts.lost -= 1


@dataclass(frozen=True, slots=True)
class HarvestRun:
    """A finished run. `status` is COMPLETE, PARTIAL or GIVEN_UP; `lost` names some records."""

    number: int
    status: str
    started: str
    ended: str
    since: str | None
    until: str | None
    began: str | None
    counts: Counts
    lost: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file of rows: its name, its number of rows, and its size in bytes.

    `begun` is when its run began, by our clock; "" in states of Sheaf 0.2.0.
    """

    name: str
    rows: int
    size: int
    begun: str = ""

    @property
    def run(self) -> int:
        """Number of the run that wrote it, which is in its name (folder.part_name)."""
        return int(self.name.split("-")[1])


@dataclass(frozen=True, slots=True)
class ShortWalks:
    """Walks in a row whose list ended before its completeListSize.

    `asked` are the user's dates of all these walks. `began` is when the last one began.
    """

    walks: int
    began: str
    asked: tuple[str | None, str | None]


@dataclass(slots=True)
class HarvestState:
    """State of a harvest. `commit` counts how often it was written.

    `identify` holds fields of Identify, `format` those of ListMetadataFormats for the prefix.
    `emails` are all of Identify's, and `descriptions` the elements of XML in its descriptions.
    `covered` holds the earliest and the latest datestamp harvested; the earliest is None if there
    is no lower limit. `covered` itself is None until a run is complete. `surplus` is the share of
    completeListSize by which it is known to be too large. `lag` is the longest time in seconds by
    which records appeared after their datestamps. `probed` is when that was last looked for.
    """

    base_url: str
    prefix: str
    set: str | None
    form: str
    identify: Mapping[str, str] = field(default_factory=dict)
    format: Mapping[str, str] = field(default_factory=dict)
    covered: tuple[str | None, str] | None = None
    commit: int = 0
    parts: list[PartFile] = field(default_factory=list)
    runs: list[HarvestRun] = field(default_factory=list)
    going: RunState | None = None
    short: ShortWalks | None = None
    surplus: float = 0.0
    lag: float = 0.0
    probed: str = ""
    emails: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()

    @property
    def granularity(self) -> str:
        """Granularity of the repository's datestamps; days if Identify does not say."""
        return SECOND if self.identify.get("granularity", "").endswith("Z") else DAY

    @property
    def is_whole(self) -> bool:
        """Whether the last run ended with a whole list; single records of it may be lost."""
        if self.going is not None or not self.runs:
            return False
        last, covered = self.runs[-1], self.covered
        has_end = covered is not None and last.began is not None and last.began <= covered[1]
        return last.status == COMPLETE or (bool(last.counts.lost) and has_end)

    def order_runs(self) -> Callable[[int], str]:
        """Return a function that gives each run's place in the order of runs of all lists, as text.

        The order is that of our clock, and never that of the repository's. Within this list it is
        the order of numbers, even if our clock was set back.
        """
        begun = {run.number: run.started for run in self.runs}
        begun |= {part.run: part.begun for part in self.parts if part.begun}
        if self.going is not None:
            begun[self.going.number] = self.going.started
        latest, places = "", dict[int, str]()
        for number in sorted(begun):
            latest = max(latest, begun[number])
            places[number] = f"{latest} {number:06}"
        # Runs that the state no longer names came before those that it does.
        return lambda number: places.get(number, f" {number:06}")

    def end(self, run: HarvestRun) -> None:
        """Add a finished run."""
        self.runs = [*self.runs, run][-_RUNS:]
        self.going = None

    def document(self) -> bytes:
        """Return the state as a JSON document."""
        members = {"harvest": VERSION, **asdict(self)}
        return json.dumps(members, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def parse(data: bytes, where: str) -> HarvestState:
    """Parse a state document. Raises HarvestError if it is invalid."""
    try:
        document = json.loads(data)
        if not isinstance(document, dict):
            raise ValueError(type(document).__name__)
        version = document.get("harvest")
        if version != VERSION:
            raise HarvestError(f"{where} was written by another version of Sheaf: {version!r}")
        return documents.build(HarvestState, document)
    except ValueError as error:
        raise HarvestError(f"{where} is damaged: {describe_failure(error)}"[:300]) from error
