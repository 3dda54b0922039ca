"""Audit of the packs of the obi store: their digests, and the ranges that logs name in them."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from builder.obi import key, pack, replay
from builder.obi.history import Committed
from builder.runtime import Advance
from builder.store.findings import Finding
from builder.threads import map_in_order
from functions.database import engine
from functions.snapshot.errors import DamagedStore, MissingObject, StoreError
from functions.snapshot.store import Writer

_THREADS = 4
_COLUMNS = ("key", "bytes", "sha256", "length", "encoding", "pack", "start")
_GROUP = "GROUP BY pack ORDER BY pack"
_NAMED = f"SELECT {', '.join(_COLUMNS)} FROM ({{}}) WHERE row = 'version' AND pack IS NOT NULL"


@dataclass(frozen=True, slots=True)
class _Range:
    """A version in a pack; implements builder.obi.pack.PackedRow."""

    key: str
    bytes: int
    sha256: str
    length: int | None
    encoding: str | None
    pack: str
    start: int


@dataclass
class PackAudit:
    """Packs that logs name and that exist, and findings on them. `bytes` are to be read."""

    store: Writer
    runs: Sequence[Committed]
    sizes: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    bytes: int = 0
    objects: int = 0
    read: int = 0

    @staticmethod
    def begin(
        store: Writer, runs: Sequence[Committed], chosen: Callable[[str], bool], *, whole: bool
    ) -> "PackAudit":
        """Compare the listing of packs with the logs of `runs`; `chosen` selects packs to read.

        Other packs are orphans if the runs are the `whole` history.
        """
        found = PackAudit(store, runs)
        there = {entry.key: entry.bytes for entry in store.entries(key.PACKS)}
        named: set[str] = set()
        for name, end in found._rows("pack, max(start + coalesce(length, bytes)) AS last", _GROUP):
            where = key.pack(name)
            named.add(where)
            if where not in there:
                found._find("obi-missing", where, "a log names this pack, but it does not exist")
            elif there[where] < end:
                found._find("obi-altered", where, f"a log names its byte {end - 1:,}")
            elif chosen(where):
                found.sizes[where] = there[where]
        found.bytes = sum(found.sizes.values())
        found.objects = len(named)
        for where in sorted(there.keys() - named if whole else ()):
            found._find("obi-pack-orphan", where, "no log names this pack")
        return found

    def finish(self, advance: Advance) -> None:
        """Read the chosen packs, and check each range."""
        rows = (_Range(*row) for row in self._rows("*", "ORDER BY pack, start, key"))
        packs = ((name, list(some)) for name, some in groupby(rows, lambda row: row.pack))
        some = (one for one in packs if key.pack(one[0]) in self.sizes)
        for where, findings in map_in_order(self._check, some, _THREADS, _THREADS):
            self.findings += findings
            self.read += 1
            advance(self.sizes[where])

    def _check(self, one: tuple[str, list[_Range]]) -> tuple[str, list[Finding]]:
        where = key.pack(one[0])
        try:
            path = self.store.local(where)
            with path.open("rb") as file:
                found = list(_check_ranges(file.fileno(), one[1]))
                file.seek(0)
                if hashlib.file_digest(file, "sha256").hexdigest() != one[0]:
                    problem = "its bytes differ from its name"
                    found.insert(0, Finding("obi-altered", where, problem))
                return where, found
        except MissingObject:
            return where, [Finding("obi-missing", where, "it was removed during the check")]
        except StoreError as error:
            return where, [Finding("obi-altered", where, str(error))]

    def _rows(self, columns: str, rest: str) -> Iterator[tuple[Any, ...]]:
        if not self.runs:
            return
        with (
            tempfile.TemporaryDirectory(prefix="sheaf-verify-") as folder,
            closing(engine.connect(scratch=Path(folder))) as connection,
            replay.logs(connection, self.store, self.runs, Path(folder)) as logs,
        ):
            named = " UNION ALL ".join(map(_NAMED.format, logs))
            for rows in engine.batches(connection, f"SELECT {columns} FROM ({named}) {rest}"):
                yield from rows

    def _find(self, code: str, where: str, problem: str) -> None:
        self.findings.append(Finding(code, where, problem))


def _check_ranges(file: int, rows: Sequence[_Range]) -> Iterator[Finding]:
    for row in rows:
        try:
            pack.restore(partial(_read, file, row.start), row)
        except DamagedStore as error:
            yield Finding("obi-altered", row.key, str(error))


def _read(file: int, start: int, size: int) -> bytes:
    return os.pread(file, size, start)
