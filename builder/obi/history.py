"""History: which runs of the obi store were opened, and which of them count.

A run ends by one object that only the first to write it writes: `commit.json`. It says what the
run holds, or that the run was abandoned and nothing of it counts.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from builder.obi import key
from functions.snapshot import instant
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.store import Writer

OPEN, DOCUMENTS, LOG, COMMIT = "open.json", "documents.jsonl.gz", "log.jsonl.gz", "commit.json"
"""What belongs to a run itself, in the order in which it is written."""
MEMBERS = (OPEN, DOCUMENTS, LOG, COMMIT)

_THREADS = 8


@dataclass(frozen=True, slots=True)
class Committed:
    """A run that counts; times are aware and in UTC.

    `log`, `documents` (None where the run has none) and `digest`, which is of its own commit.json,
    are SHA-256 in hexadecimal digits; `previous` is the digest of the run before it, None for the
    first. `counts` are rows of the log by name.
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

    @staticmethod
    def of(tist: int, data: bytes) -> "Committed | None":
        """Read a commit.json; None is an abandoned run. Raises DamagedStore."""
        where = key.run(tist) + COMMIT
        try:
            told = json.loads(data)
            if told["tist"] != tist:
                raise DamagedStore(f"{where} is damaged: it is that of the run {told['tist']}")
            if "abandoned" in told:
                return None
            before = told["previous"]
            return Committed(
                tist,
                str(told["kind"]),
                str(told["source"]),
                instant.from_text(told["begun"]),
                instant.from_text(told["committed"]),
                str(told["log"]),
                int(told["log_bytes"]),
                told["documents"],
                None if before is None else str(before["sha256"]),
                hashlib.sha256(data).hexdigest(),
                {str(name): int(count) for name, count in told["counts"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedStore(f"{where} is damaged: {error!r}") from error

    def document(self, before: "Committed | None") -> bytes:
        """Return what its commit.json is, where it comes after the run `before`."""
        previous = before and {"tist": before.tist, "sha256": before.digest}
        return _json(
            {
                "tist": self.tist,
                "kind": self.kind,
                "source": self.source,
                "begun": instant.to_text(self.begun),
                "committed": instant.to_text(self.committed),
                "log": self.log,
                "log_bytes": self.log_bytes,
                "documents": self.documents,
                "previous": previous,
                "counts": dict(sorted(self.counts.items())),
            }
        )


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """What open.json says of a run.

    `content` is a digest of what its source held, or empty; `after` the highest tist that was
    opened before it.
    """

    tist: int
    kind: str
    source: str
    asked: str
    content: str
    begun: datetime
    after: int | None

    @staticmethod
    def read(store: Writer, tist: int) -> "OpenedRun":
        """Read it. Raises DamagedStore, and MissingObject where there is none."""
        where = key.run(tist) + OPEN
        try:
            told: dict[str, Any] = json.loads(store.read(where))
            return OpenedRun(
                int(told["tist"]),
                str(told["kind"]),
                str(told["source"]),
                str(told["asked"]),
                str(told["content"]),
                instant.from_text(told["begun"]),
                None if told["after"] is None else int(told["after"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedStore(f"{where} is damaged: {error!r}") from error

    def document(self) -> bytes:
        """Return what its open.json is."""
        return _json(
            {
                "tist": self.tist,
                "kind": self.kind,
                "source": self.source,
                "asked": self.asked,
                "content": self.content,
                "begun": instant.to_text(self.begun),
                "after": self.after,
            }
        )

    def name(self) -> str:
        """Return how it is named to a person."""
        return f"{self.tist} ({self.kind} of {self.source}, begun {instant.to_text(self.begun)})"


def standing(store: Writer) -> dict[int, frozenset[str]]:
    """Return by tist, ascending, which members each run has that was opened or has ended."""
    return told_by(store.keys(key.RUNS))


def told_by(keys: Iterable[str]) -> dict[int, frozenset[str]]:
    """Return the same of a listing of what lies below key.RUNS."""
    found: dict[int, set[str]] = {}
    for one in keys:
        tist = key.run_of(one)
        if tist is not None:
            found.setdefault(tist, set()).add(one.removeprefix(key.run(tist)))
    return {tist: frozenset(found[tist]) for tist in sorted(found) if found[tist] & {OPEN, COMMIT}}


def is_open(members: frozenset[str]) -> bool:
    """Tell whether a run with those members is neither committed nor abandoned."""
    return COMMIT not in members


def find_ended(store: Writer, tist: int) -> Committed | None:
    """Return the run, which has ended; None if it was abandoned. Raises DamagedStore."""
    try:
        return Committed.of(tist, store.read(key.run(tist) + COMMIT))
    except MissingObject as error:
        raise DamagedStore(str(error)) from error


def history(store: Writer) -> tuple[Committed, ...]:
    """Return the runs that count, ascending by tist.

    Raises DamagedStore where one of them does not follow on the one before it.
    """
    tists = [tist for tist, members in standing(store).items() if not is_open(members)]
    with ThreadPoolExecutor(_THREADS) as pool:
        runs = tuple(
            run for run in pool.map(lambda t: find_ended(store, t), tists) if run is not None
        )
    for before, run in zip((None, *runs), runs, strict=False):
        if run.previous != (before and before.digest):
            raise DamagedStore(
                f"{key.run(run.tist)}{COMMIT} does not follow on "
                f"{key.run(before.tist) + COMMIT if before else 'nothing'}: a run before it was "
                "removed or edited; `sheaf verify` tells more"
            )
    return runs


def _json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def abandonment(tist: int, why: str, now: datetime) -> bytes:
    """Return the commit.json by which nothing of a run counts."""
    return _json({"tist": tist, "abandoned": why, "at": instant.to_text(now)})
