"""States: what one harvest asks for, how far it is, and what came of its runs. Pure.

A state is a JSON document (folder.STATE). All times are UTC; datestamps are as the repository
has them.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from builder.harvest.errors import HarvestError

VERSION = 1
DAY = "YYYY-MM-DD"
SECOND = "YYYY-MM-DDThh:mm:ssZ"
_RUNS = 50
_NOTES = 20
_RISES = 5
LOST = 1000
"""How many records that could not be had are named; more are counted."""
COMPLETE, PARTIAL, GIVEN_UP = "complete", "partial", "given up"


@dataclass(slots=True)
class Counts:
    """What came in a run: each item is `new`, `changed` or the `same` as in an earlier run.

    `another` are further versions of one item in the run, `again` what came in it before and was
    not kept again. `deleted` and `mended` are of what was kept; `lost` could not be had. `outside`
    were listed although their datestamps lie outside the dates that were asked for; `later` have
    datestamps after the beginning of the list.
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

    @property
    def distinct(self) -> int:
        """How many items came."""
        return self.new + self.changed + self.same


@dataclass(slots=True)
class RunState:
    """A run that is not at its end: what was asked, and where in its list it is.

    `since` and `until` are what the run asks for, `begin` what the present list began with; each
    may be None. `dated` is the first responseDate that came. `high` is the latest datestamp that
    came, `last` the present list's last one.
    `ordered` is whether none was earlier than one before it; `rises`, how often one was later.
    `gained` counts items that came since the list broke off last, `stage` how often it did so in a
    row with nothing gained. `fell` is whether a list began at a datestamp then, `rewound` whether
    it had to begin at the start again, `remade` whether the index of what was seen was made again.
    `owed` could not be had in the run before, with why not, and are still to be asked for. `idle`
    counts pages in a row that brought nothing, `mark` is what one of them is known by. `bad` is the
    latest datestamp of a record that could not be had.
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
    counts: Counts = field(default_factory=Counts)
    owed: list[tuple[str, str]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_in_order(self) -> bool:
        """Whether lists are in the order of datestamps; what rises less often may be by chance."""
        return self.ordered and self.rises >= _RISES

    def note(self, text: str) -> None:
        """Keep a remark for the account, once, as long as there are not too many."""
        if text not in self.notes and len(self.notes) < _NOTES:
            self.notes.append(text)

    def lose(self, identifier: str, why: str) -> None:
        """Keep a record that could not be had, once."""
        if identifier and identifier in dict(self.lost):
            return
        self.counts.lost += 1
        if len(self.lost) < LOST:
            self.lost.append((identifier, why))

    def find(self, identifier: str) -> None:
        """Take a record that came from those that could not be had."""
        if self.lost and identifier in dict(self.lost):
            self.lost = [one for one in self.lost if one[0] != identifier]
            self.counts.lost -= 1


@dataclass(frozen=True, slots=True)
class HarvestRun:
    """A run at its end. `status` is COMPLETE, PARTIAL or GIVEN_UP; `lost` names some records."""

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
    """A file of rows: its name, how many are in it, and its size in bytes."""

    name: str
    rows: int
    size: int


@dataclass(slots=True)
class HarvestState:
    """All that is known of a harvest. `commit` counts how often it was written.

    `identify` are fields of Identify, `format` those of ListMetadataFormats for the prefix.
    `covered` are the earliest and the latest datestamp of what is had, None where there is no
    earliest; it is None itself as long as no run was complete.
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

    @property
    def granularity(self) -> str:
        """The granularity of the repository's datestamps; days where it does not tell."""
        return SECOND if self.identify.get("granularity", "").endswith("Z") else DAY

    def end(self, run: HarvestRun) -> None:
        """Take a run's end into account."""
        self.runs = [*self.runs, run][-_RUNS:]
        self.going = None

    def document(self) -> bytes:
        """Return it as it is written."""
        found = {"harvest": VERSION, **asdict(self)}
        return json.dumps(found, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def parse(data: bytes, where: str) -> HarvestState:
    """Return the state of its document. Raises HarvestError where it is none."""
    try:
        document = json.loads(data)
        if not isinstance(document, dict):
            raise TypeError(type(document).__name__)
        version = document.pop("harvest", None)
        if version != VERSION:
            raise HarvestError(f"{where} is of another version of Sheaf: {version!r}")
        return _state(document)
    except (ValueError, TypeError, KeyError) as error:
        raise HarvestError(f"{where} is damaged: {error!r}"[:300]) from error


def _state(document: dict[str, Any]) -> HarvestState:
    going, covered = document.pop("going"), document.pop("covered")
    return HarvestState(
        going=None if going is None else _run_state(going),
        parts=[PartFile(**part) for part in document.pop("parts")],
        runs=[_run(run) for run in document.pop("runs")],
        covered=None if covered is None else (covered[0], str(covered[1])),
        **_check_names(HarvestState, document),
    )


def _run_state(document: dict[str, Any]) -> RunState:
    counts = Counts(**_check_names(Counts, document.pop("counts")))
    owed, lost = (_pairs(document.pop(name)) for name in ("owed", "lost"))
    first, last = document.pop("asked")
    return RunState(
        counts=counts, owed=owed, lost=lost, asked=(first, last), **_check_names(RunState, document)
    )


def _run(document: dict[str, Any]) -> HarvestRun:
    return HarvestRun(
        counts=Counts(**_check_names(Counts, document.pop("counts"))),
        lost=tuple(_pairs(document.pop("lost"))),
        notes=tuple(document.pop("notes")),
        **_check_names(HarvestRun, document),
    )


def _pairs(some: list[list[str]]) -> list[tuple[str, str]]:
    return [(str(identifier), str(why)) for identifier, why in some]


def _check_names(kind: type, document: dict[str, Any]) -> dict[str, Any]:
    names = {one.name for one in fields(kind)}
    if strange := document.keys() - names:
        raise KeyError(sorted(strange)[0])
    return document
