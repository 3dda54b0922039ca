"""Folder of a harvest: one process at a time adds parts, and commits are atomic.

<name>/harvest.json           the state; a part counts once it is named there
<name>/part-<run>-<n>.parquet rows of row.ROW in the order of arrival
<name>/part-<run>-<n>.jsonl   the same rows as JSON lines, if this form was chosen
<name>/part-<run>-<n>.xml     the same rows as <records> of raw record elements, likewise
<name>/sets.json              [setSpec, setName] of the repository's sets, if it has any
<name>/seen.sqlite            index of the items seen; it is rebuilt if it is missing

There is one harvest for each base URL, prefix and set. Of rows with one identifier the last counts.
The state is replaced atomically. After a crash the folder therefore holds the last commit; parts
that the state does not name are removed.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from builder.errors import UsageError, explaining
from builder.http.secrets import strip_secrets
from builder.sources.harvest import records, state
from builder.sources.harvest.errors import HarvestError
from builder.sources.harvest.repository import HarvestedRepository
from builder.sources.harvest.seen import Seen
from builder.sources.harvest.state import HarvestState, PartFile
from builder.sources.harvest.version import (
    HarvestedRow,
    Sight,
    item_hash,
)
from builder.store.durable import DRAFT, replace_durably

STATE = "harvest.json"
SETS = "sets.json"
SEEN = "seen.sqlite"
FORMS = ("parquet", "jsonl", "xml")
_PART = re.compile(r"part-([0-9]{6})-([0-9]{6})\.(parquet|jsonl|xml)")
_ODD = re.compile(r"[^a-z0-9.]+")


def folder_name(repository: str, prefix: str, set_: str | None) -> str:
    """Return the folder name of a harvest: readable, and different for each harvest.

    `repository` is the name of the repository, or its base URL.
    """
    parts = urlsplit(repository)
    shown = "-".join(filter(None, (parts.netloc, parts.path, prefix, set_ or "")))
    digest = hashlib.sha256("\n".join((repository, prefix, set_ or "")).encode()).hexdigest()
    return f"{_ODD.sub('-', shown.lower()).strip('-.')[:80]}-{digest[:8]}"


def find_folder(
    home: Path, repository: HarvestedRepository, address: str, prefix: str, set_: str | None
) -> Path:
    """Return the folder of a harvest; one that began under an address stays there."""
    names = (repository.name, strip_secrets(address), address, *repository.addresses)
    paths = [home / folder_name(name, prefix, set_) for name in dict.fromkeys(names) if name]
    return next((path for path in paths if (path / STATE).exists()), paths[0])


def part_name(run: int, number: int, form: str) -> str:
    """Return the name of a part of a run; the names sort in the order of arrival."""
    return f"part-{run:06}-{number:06}.{form}"


def is_part(file: str) -> bool:
    """Return whether a file of that name is a part."""
    return _PART.fullmatch(file) is not None


def read(folder: Path) -> HarvestState | None:
    """Return the state in a harvest's folder, or None if there is no state. Raises HarvestError."""
    path = folder / STATE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HarvestError(f"{path} cannot be read: {error.strerror}") from error
    harvest = state.parse(data, str(path))
    for part in harvest.parts:
        if not is_part(part.name):
            raise HarvestError(f"{path} names something other than a part: {part.name[:100]!r}")
    return harvest


def check_part(folder: Path, part: PartFile) -> Path:
    """Return the path of a part of a harvest. Raises HarvestError if it was altered."""
    file = folder / part.name
    if not file.is_file() or file.stat().st_size != part.size:
        raise HarvestError(f"{file} was altered: remove {STATE} to harvest everything again")
    return file


def rows(folder: Path, harvest: HarvestState) -> Iterator[HarvestedRow]:
    """Yield all rows of a harvest in the order of arrival. Raises HarvestError."""
    for part in harvest.parts:
        yield from records.read_part(check_part(folder, part), part.run)


class HarvestFolder:
    """The folder of one harvest, locked by this process; results are written here."""

    def __init__(self, path: Path, harvest: HarvestState, seen: Seen, remade: bool) -> None:
        self.path = path
        self.state = harvest
        self.seen = seen
        self.remade = remade
        self._writer: records.PartWriter | None = None
        self._name = ""
        self._rows = 0

    def add(self, row: HarvestedRow) -> Sight:
        """Store a row, unless it was seen before. Raises HarvestError."""
        sight = self.seen.add(row.run, row.identifier, row.datestamp, row.record, row.deleted)
        if sight in (Sight.SAME, Sight.AGAIN):
            return sight
        if self._writer is None:
            number = sum(part.run == row.run for part in self.state.parts)
            self._name = part_name(row.run, number, self.state.form)
            self._writer, self._rows = records.open_part(self.path / self._name, self.state.form), 0
        self._writer.append(row)
        self._rows += 1
        return sight

    def find_unlisted(self, run: int) -> dict[str, tuple[str, ...]]:
        """Return the items that are not deleted and were not received in a run, with their sets.

        Raises HarvestError.
        """
        items = self.seen.list_unlisted(run)
        latest: dict[str, tuple[str, ...]] = {}
        for part in self.state.parts if items else ():
            headers = records.read_headers(self.path / part.name)
            latest |= {name: sets for name, sets in headers if item_hash(name.encode()) in items}
        return latest

    def commit(self) -> None:
        """Flush the stored rows and the state to disk. Raises HarvestError."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            size = (self.path / self._name).stat().st_size
            begun = self.state.going.started if self.state.going else ""
            self.state.parts.append(PartFile(self._name, self._rows, size, begun))
        self.state.commit += 1
        self.seen.commit(self.state.commit)
        self.write(STATE, self.state.document())

    def keep_sets(self, sets: Sequence[tuple[str, str]]) -> None:
        """Write the repository's sets: setSpec and setName of each."""
        text = json.dumps(sets, ensure_ascii=False, indent=1)
        self.write(SETS, text.encode("utf-8", "replace"))

    def write(self, name: str, data: bytes) -> None:
        """Replace a file atomically and durably. Raises HarvestError."""
        with explaining(self.path, "written", HarvestError):
            replace_durably(self.path / name, data)


@contextmanager
def open_folder(
    path: Path, fresh: HarvestState, form: str | None = None
) -> Iterator[HarvestFolder]:
    """Open the folder of a harvest; without a state in it, the state is `fresh`.

    The folder is removed again if the harvest never began.
    Raises UsageError if another process uses the folder, or if its form is not `form` (unless
    `form` is None). Raises HarvestError if the folder is damaged.
    """
    with lock_folder(path):
        harvest = read(path) or fresh
        if strip_secrets(harvest.base_url) != fresh.base_url:  # the repository moved
            harvest.base_url = fresh.base_url
        for part in harvest.parts:
            check_part(path, part)
        if form not in (None, harvest.form):
            raise UsageError(
                f"{path} has the format {harvest.form}: --format {form} needs another DIR"
            )
        named = {part.name for part in harvest.parts}
        with explaining(path, "written", HarvestError):
            for file in path.iterdir():
                left = is_part(file.name) and file.name not in named
                if left or file.name.endswith(DRAFT):
                    file.unlink()
        seen = Seen.open(path / SEEN, harvest.commit)
        remade = seen is None
        if seen is None:
            seen, run = Seen.create(path / SEEN), 0
            for row in rows(path, harvest):
                if row.run != run:
                    run = row.run
                    seen.begin()
                seen.add(row.run, row.identifier, row.datestamp, row.record, row.deleted)
        with contextlib.closing(seen):
            yield HarvestFolder(path, harvest, seen, remade and bool(harvest.parts))
        if not (harvest.runs or harvest.going or harvest.parts):
            # Remove the folder of a harvest that never began, unless it has files of others.
            with explaining(path, "written", HarvestError):
                for name in (STATE, SETS, SEEN):
                    (path / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.rmdir()


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Make the folder, and lock it for this process. Raises UsageError if another one has it."""
    with explaining(path, "written", HarvestError):
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another process is harvesting into {path}: wait until it ends"
            ) from None
        yield
    finally:
        os.close(handle)
