"""History: which runs of the obi store were opened, and which of them count.

A run ends with one object, `commit.json`, which only its first writer can create. It says what the
run contains, or that the run was abandoned and nothing of it counts.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from builder.obi import key
from builder.threads import map_requests
from functions.snapshot import instant
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.seal import build, refuse_damage
from functions.snapshot.store import Writer

OPEN, DOCUMENTS, LOG, COMMIT = "open.json", "documents.parquet", "log.parquet", "commit.json"
"""The objects of a run itself, in the order of writing."""
FORMAT, DATED = 2, 3
"""Formats of the runs that are written now, and of those of Sheaf 0.2 that added an older state
between others: their rows have times of their own. Both are read for good."""
MEMBERS = (OPEN, DOCUMENTS, LOG, COMMIT)
"""Names of the objects of a run, in the order of writing."""
ALIVE = "alive.json"
"""The lease that the process of an open run renews until it ends the run."""


IMPORT = "import"
"""The kind of a run that recorded captures of web archives: its exchanges have their times."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A run that counts; times are aware and in UTC.

    `log`, `documents` and `digest` are SHA-256 in hexadecimal digits. `documents` is None if the
    run has no documents; `digest` is that of the run's own commit.json. `previous` is the digest of
    the run before it, None for the first run. `counts` has the number of log rows by name. `format`
    is DATED if rows have their own times, else FORMAT.
    """

    tist: int
    kind: str
    source: str
    begun: datetime
    committed: datetime
    log: str
    log_bytes: int
    documents: str | None
    previous: str | None
    digest: str
    counts: Mapping[str, int]
    format: int = FORMAT
    as_of: int | None = None
    """The time of the state that was read, if a later state had been read before."""

    @property
    def time(self) -> int:
        """The time of the state that it read."""
        return self.tist if self.as_of is None else self.as_of

    @property
    def is_import(self) -> bool:
        """Whether it recorded captures of web archives."""
        return self.kind == IMPORT

    @property
    def files(self) -> Mapping[str, str]:
        """Its log and documents by key, each with its digest."""
        if self.documents is None:
            return {self.log_key: self.log}
        return {self.log_key: self.log, self.documents_key: self.documents}

    @property
    def log_key(self) -> str:
        """The key of its log."""
        return key.run(self.tist) + LOG

    @property
    def documents_key(self) -> str:
        """The key of its documents."""
        return key.run(self.tist) + DOCUMENTS

    @staticmethod
    def of(tist: int, data: bytes) -> "Committed | None":
        """Parse a commit.json; None stands for an abandoned run. Raises DamagedStore."""
        where = key.run(tist) + COMMIT
        with refuse_damage(where):
            members = json.loads(data)
            if members["tist"] != tist:
                raise ValueError(f"it belongs to the run {members['tist']}")
            if "abandoned" in members:
                return None
            form = int(members.get("format", 1))
            if form not in (FORMAT, DATED):
                remedy = "make a new store, and ingest the sources again"
                if form > DATED:
                    remedy = "it needs a newer Sheaf"
                raise DamagedStore(f"{where} is of format {form}: {remedy}")
            before = members["previous"]
            members["previous"] = None if before is None else before["sha256"]
            return build(Committed, members | {"digest": hashlib.sha256(data).hexdigest()})

    def document(self, before: "Committed | None") -> bytes:
        """Return the commit.json of this run, which follows on the run `before`."""
        previous = before and {"tist": before.tist, "sha256": before.digest}
        names = ("tist", "format", "as_of", "kind", "source", "begun", "committed", "log")
        members = {name: getattr(self, name) for name in (*names, "log_bytes", "documents")}
        if self.as_of is None:
            del members["as_of"]
        members["previous"] = previous
        return write_json(members | {"counts": dict(sorted(self.counts.items()))})


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """The content of an open.json.

    `content` is a digest of the source's content, or empty. `after` is the highest tist that was
    opened before its own, None for the first. `leased` says that its process renews ALIVE. `as_of`
    is as in Committed.
    """

    tist: int
    kind: str
    source: str
    asked: str
    content: str
    begun: datetime
    after: int | None
    leased: bool = False
    as_of: int | None = None

    @staticmethod
    def read(store: Writer, tist: int) -> "OpenedRun":
        """Read the open.json of a run. Raises DamagedStore, and MissingObject if it is missing."""
        where = key.run(tist) + OPEN
        with refuse_damage(where):
            return build(OpenedRun, json.loads(store.read(where)))

    def document(self) -> bytes:
        """Return the open.json of this run."""
        document = asdict(self)
        if self.as_of is None:
            del document["as_of"]
        return write_json(document)

    def name(self) -> str:
        """Return the name of the run for messages."""
        return f"{self.tist} ({self.kind} of {self.source}, begun {instant.to_text(self.begun)})"


def standing(store: Writer) -> dict[int, frozenset[str]]:
    """Return the members of each run that was opened or has ended, by tist, ascending."""
    return group_by_run(store.keys(key.RUNS))


def group_by_run(keys: Iterable[str]) -> dict[int, frozenset[str]]:
    """Return the same from a listing of the keys below key.RUNS."""
    members: dict[int, set[str]] = {}
    for name in keys:
        tist = key.run_of(name)
        if tist is not None:
            members.setdefault(tist, set()).add(name.removeprefix(key.run(tist)))
    begun = {tist: frozenset(members[tist]) for tist in sorted(members)}
    return {tist: names for tist, names in begun.items() if names & {OPEN, COMMIT}}


def is_open(members: frozenset[str]) -> bool:
    """Return whether a run with these members is neither committed nor abandoned."""
    return COMMIT not in members


def find_ended(store: Writer, tist: int) -> Committed | None:
    """Return a run that has ended; None if it was abandoned. Raises DamagedStore."""
    try:
        return Committed.of(tist, store.read(key.run(tist) + COMMIT))
    except MissingObject as error:
        raise DamagedStore(str(error)) from error


def history(store: Writer) -> tuple[Committed, ...]:
    """Return the runs that count, ascending by tist.

    Raises DamagedStore if a run does not follow on the one before it.
    """
    ended = [tist for tist, members in standing(store).items() if not is_open(members)]
    committed = map_requests(lambda tist: find_ended(store, tist), ended)
    runs = tuple(run for run in committed if run is not None)
    for before, run in zip((None, *runs), runs, strict=False):
        if run.previous != (before and before.digest):
            raise DamagedStore(
                f"{key.run(run.tist)}{COMMIT} does not follow on "
                f"{key.run(before.tist) + COMMIT if before else 'nothing'}: an earlier run was "
                "removed or edited; run `sheaf verify` for details"
            )
    return runs


def write_json(document: object) -> bytes:
    """Return a document as it is stored; instants are written as text."""
    text = json.dumps(document, ensure_ascii=False, indent=1, default=instant.to_text)
    return text.encode() + b"\n"
