"""Replication of the runs of one obi store to another place, unchanged.

Each run is copied in the order of its writing, so readers never see a part of it. Copied objects
are checked against the digests in the run's log. Objects that the target already has are not copied
again.
"""

import hashlib
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from builder.intake.intake import writing
from builder.obi import content, key, log
from builder.obi.content import Redirect, Version
from builder.obi.history import (
    COMMIT,
    MEMBERS,
    OPEN,
    Committed,
    history,
    is_open,
    standing,
)
from builder.obi.key import KeySet
from builder.runtime import Advance
from builder.threads import map_in_order
from functions.snapshot.errors import Conflict, DamagedStore, StoreError
from functions.snapshot.store import ListedObject, Writer

_SMALL = 1 << 20  # bytes of the largest object that is copied together with others
_THREADS = 16
_TELLS = "run `sheaf verify` to see what else is wrong"
_AHEAD = 64  # small objects in memory at a time


class ForeignRuns(StoreError):
    """The target has runs that are not the source's."""


@dataclass(frozen=True, slots=True)
class _Missing:
    """The objects of a run that the target lacks, in the order of writing.

    `damaged` are keys of objects that have another size there; `there` counts complete objects.
    """

    stages: Sequence[Sequence[ListedObject]]
    damaged: Sequence[str]
    there: int

    @property
    def objects(self) -> int:
        """Number of missing objects."""
        return sum(map(len, self.stages))

    @property
    def bytes(self) -> int:
        """Number of bytes to copy."""
        return sum(entry.bytes for some in self.stages for entry in some)


class _LoggedBytes:
    """The digests that a run declares for some keys; other keys may have any bytes."""

    def __init__(self) -> None:
        self._keys, self._digests = KeySet(), KeySet()

    def add(self, where: str, digest: str) -> None:
        """Declare the SHA-256 of an object."""
        self._keys.add(where)
        self._digests.add(f"{where} {digest}")

    def allows(self, where: str, digest: str) -> bool:
        """Return whether an object may have that SHA-256."""
        return where not in self._keys or f"{where} {digest}" in self._digests


class ObiReplication:
    """The objects to copy, of the runs that have ended."""

    def __init__(self, source: Writer, target: Writer) -> None:
        """Compare the stores.

        Raises ForeignRuns, and DamagedStore if the source's runs do not form a chain.
        """
        self._source = source
        self._target = target
        self._missing: dict[int, Committed | None] = {}
        self.objects = 0
        """Number of objects to copy."""
        self.bytes = 0
        self.there = 0
        """Number of objects that the target already has."""
        runs = {run.tist: run for run in history(source)}
        ended = [t for t, members in standing(source).items() if not is_open(members)]
        if ended and target.folds_case():
            raise StoreError(
                f"{target.address}: this disk ignores case in file names, but ids of files differ "
                "by case; choose another place"
            )
        self._compare(standing(target), set(ended))
        self._packs = self._find_packs(list(runs.values()))
        counts = map_in_order(self._counts, ended, _THREADS, 2 * _THREADS)
        for tist, (objects, size, there) in zip(ended, counts, strict=True):
            self.objects += objects
            self.bytes += size
            self.there += there
            if objects:
                self._missing[tist] = runs.get(tist)
        self._tables = self._list_tables()
        self.objects += len(self._tables)
        self.bytes += sum(entry.bytes for entry in self._tables)

    def __call__(self, advance: Advance) -> None:
        """Copy the objects. Raises DamagedStore if bytes of the source differ from its logs."""
        named = _LoggedBytes()
        for entry in self._packs:
            named.add(entry.key, entry.key.removeprefix(key.PACKS))
        self._target.remove(*self._damaged)
        self._copy(self._packs, named, advance)
        for tist, run in self._missing.items():
            one, known = self._plan(tist), _LoggedBytes()
            if run is not None:
                known = self._read_known(run)
            self._target.remove(*one.damaged)
            for stage in one.stages:
                self._copy(stage, known, advance)
        known = _LoggedBytes()
        for entry in self._tables:
            _, digest = key.parse_file_table(entry.key) or (0, "")
            known.add(entry.key, digest)
        self._copy(self._tables, known, advance)

    def _list_tables(self) -> list[ListedObject]:
        """Return the derived tables that the target lacks."""
        there = frozenset(self._target.keys(key.FILES))
        tables = (e for e in self._source.entries(key.FILES) if key.parse_file_table(e.key))
        return [entry for entry in tables if entry.key not in there]

    def _find_packs(self, runs: Sequence[Committed]) -> list[ListedObject]:
        """Return the packs that a run names and that the target lacks or has damaged."""
        named: set[str] = set()
        read = map_in_order(lambda run: log.read_packs(self._source, run), runs, 2, _THREADS)
        for some in read:
            named.update(map(key.pack, some))
        own = {entry.key: entry for entry in self._source.entries(key.PACKS)}
        there = {entry.key: entry.bytes for entry in self._target.entries(key.PACKS)}
        for where in sorted(named - own.keys()):
            raise DamagedStore(f"{self._source.address} has no {where}: {_TELLS}")
        found = [own[where] for where in sorted(named) if there.get(where) != own[where].bytes]
        self._damaged = [entry.key for entry in found if entry.key in there]
        self.objects += len(found)
        self.bytes += sum(entry.bytes for entry in found)
        self.there += len(named) - len(found)
        return found

    def _compare(self, theirs: Mapping[int, frozenset[str]], ended: set[int]) -> None:
        """Raise ForeignRuns unless all runs of the target are runs of the source."""

        def differs(named: tuple[int, str]) -> bool:
            where = key.run(named[0]) + named[1]
            return named[0] not in ended or self._source.read(where) != self._target.read(where)

        there = [(t, n) for t, names in theirs.items() for n in names & {OPEN, COMMIT}]
        found = map_in_order(differs, there, _THREADS, 2 * _THREADS)
        for (tist, _), other in zip(there, found, strict=True):
            if other:
                raise ForeignRuns(
                    f"{self._target.address} has another run {tist}: choose an empty place"
                )

    def _counts(self, tist: int) -> tuple[int, int, int]:
        one = self._plan(tist)
        return one.objects, one.bytes, one.there

    def _plan(self, tist: int) -> _Missing:
        prefix, place = key.run(tist), key.ROOT + key.folder(tist)
        own = {entry.key: entry for entry in self._source.entries(prefix)}
        stages = [[own[prefix + name]] for name in MEMBERS if prefix + name in own]
        stages.insert(1, list(self._source.entries(place)))
        there = {e.key: e.bytes for at in (prefix, place) for e in self._target.entries(at)}
        lacking = [[e for e in some if there.get(e.key) != e.bytes] for some in stages]
        return _Missing(
            lacking,
            [entry.key for some in lacking for entry in some if entry.key in there],
            sum(map(len, stages)) - sum(map(len, lacking)),
        )

    def _read_known(self, run: Committed) -> "_LoggedBytes":
        """Return the digests that a log declares. Raises DamagedStore if an object is missing."""
        held, known = KeySet(), _LoggedBytes()
        for entry in self._source.entries(key.ROOT + key.folder(run.tist)):
            held.add(entry.key)
        own = key.ROOT + key.folder(run.tist)
        for row in log.read_rows(self._source, run, "row IN ('version', 'redirect')"):
            if isinstance(row, Version) and row.pack is not None:
                continue  # copied with its pack
            if isinstance(row, Redirect) and not (row.key or "").startswith(own):
                continue  # only a slash differs, or an earlier run recorded it
            if isinstance(row, Version | Redirect) and row.key is not None:
                if row.key not in held:
                    raise DamagedStore(f"{self._source.address} has no {row.key}: {_TELLS}")
                if isinstance(row, Version):
                    known.add(row.key, row.sha256)
        prefix = key.run(run.tist)
        for where, digest in run.files.items():
            known.add(where, digest)
        known.add(prefix + COMMIT, run.digest)
        return known

    def _copy(self, entries: Sequence[ListedObject], known: _LoggedBytes, advance: Advance) -> None:
        def fetch() -> Iterator[tuple[str, bytes]]:
            for entry, data in self._fetch([e for e in entries if e.bytes <= _SMALL]):
                self._check(entry, hashlib.sha256(data).hexdigest(), known)
                advance(len(data))
                sent.append((entry.key, data))
                yield sent[-1]

        sent: deque[tuple[str, bytes]] = deque()
        for written in self._target.create_all(fetch()):
            where, data = sent.popleft()
            if not written and self._target.read(where) != data:
                raise self._other(where)
        for entry in entries:
            if entry.bytes > _SMALL:
                self._copy_large(entry, known, advance)

    def _copy_large(self, entry: ListedObject, known: _LoggedBytes, advance: Advance) -> None:
        with tempfile.TemporaryDirectory(prefix="sheaf-copy-") as folder:
            path, digest = Path(folder) / "object", hashlib.sha256()
            with writing(path.parent), path.open("wb") as out:
                for part in content.read_parts(self._source, entry.key):
                    out.write(part)
                    digest.update(part)
                    advance(len(part))
            self._check(entry, digest.hexdigest(), known)
            try:
                self._target.create_file(entry.key, path)
            except Conflict:
                if content.digest_object(self._target, entry.key)[0] != digest.hexdigest():
                    raise self._other(entry.key) from None

    def _fetch(self, entries: Sequence[ListedObject]) -> Iterator[tuple[ListedObject, bytes]]:
        """Yield the objects and their bytes in order; several are read at once."""
        read = map_in_order(lambda e: self._source.read(e.key), entries, _THREADS, _AHEAD)
        with closing(read):
            yield from zip(entries, read, strict=True)

    def _check(self, entry: ListedObject, digest: str, known: _LoggedBytes) -> None:
        if not known.allows(entry.key, digest):
            raise DamagedStore(
                f"{entry.key} of {self._source.address} differs from the bytes stored: {_TELLS}"
            )

    def _other(self, where: str) -> ForeignRuns:
        return ForeignRuns(f"{self._target.address} has another {where}: choose an empty place")
