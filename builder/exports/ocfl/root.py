"""OCFL storage root on disk: adds objects, and versions to existing objects.

An object is created beside the root, synced, and renamed into it, so it is always complete. An
object that gets versions is recreated with hard links to its files, and replaces the old folder.
For a moment the object is missing. If the process ends at that moment, the next export creates the
object again.
"""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol

from builder.exports import staging
from builder.exports.ocfl import inventory as ocfl
from builder.exports.staging import PackageFile, write_file
from builder.runtime import Advance
from functions.snapshot.errors import DamagedStore, StoreError

_OBJECTS, _BYTES = 1000, 256 << 20  # created before they are synced and moved


class ForeignRoot(StoreError):
    """The folder holds something other than an export of this store."""


@dataclass(frozen=True, slots=True)
class OcflVersion:
    """A version to add: when its content was created (W3CDTF), what happened, and its files.

    A file with the SHA-256 of an earlier one is not stored again.
    """

    created: str
    message: str
    files: tuple[PackageFile, ...]


class OcflSource(Protocol):
    """An object to export."""

    @property
    def id(self) -> str:
        """Its id in the root."""
        ...

    def list_new(self, inventory: ocfl.OcflInventory, where: Path) -> Iterable[OcflVersion]:
        """Return the versions that the object with this inventory, at `where`, lacks.

        The inventory is empty if there is no such object. Raises ForeignRoot if it is another one.
        """
        ...


@dataclass(slots=True)
class Rooted:
    """Result of an export to a storage root.

    `objects` and `versions` were added, with `bytes` of content; `there` counts objects that were
    already up to date.
    """

    objects: int = 0
    versions: int = 0
    bytes: int = 0
    there: int = 0


def export(
    sources: Iterable[OcflSource], target: Path, user: dict[str, str], advance: Advance
) -> Rooted:
    """Add all of `sources` that the storage root at `target` lacks; create the root if necessary.

    `user` is the author of the versions, with `name` and perhaps `address`. `advance` is called
    with the number of objects. Raises ForeignRoot, UsageError, DamagedStore, MissingObject and
    StoreError.
    """
    with staging.beside(target) as scratch:
        root = _Root(target, scratch, user)
        root.open()
        for source in sources:
            root.add(source)
            advance(1)
        root.flush()
        staging.sync()
        return root.done


class _Root:
    def __init__(self, target: Path, scratch: Path, user: dict[str, str]) -> None:
        self._target, self._scratch = target, scratch
        self._user = user
        self._finished: list[tuple[Path, Path]] = []
        self._unsynced = 0
        self.done = Rooted()

    def open(self) -> None:
        """Create the root, or check that the existing one is ours."""
        if self._target.exists() and any(self._target.iterdir()):
            for name, data in ocfl.root_files().items():
                path = self._target / name
                if not path.is_file() or path.read_bytes() != data:
                    raise ForeignRoot(
                        f"{self._target} is not a storage root of this layout ({name} is missing "
                        "or differs): choose a new folder, or one that an export created"
                    )
            return
        folder = self._scratch / "root"
        for name, data in ocfl.root_files().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        staging.sync()
        folder.rename(self._target)  # replaces an empty folder, if there is one

    def add(self, source: OcflSource) -> None:
        """Create the object, or add the versions that it lacks."""
        place = self._target / ocfl.place(source.id)
        inventory = _inventory(place) if place.exists() else ocfl.OcflInventory(source.id)
        if inventory.id != source.id:
            raise ForeignRoot(f"{place} is the object {inventory.id}, not {source.id}")
        new = iter(source.list_new(inventory, place))
        first = next(new, None)
        for number in range(1, inventory.head + 1):
            if not (place / f"v{number}").is_dir():
                raise DamagedStore(f"{place} lacks v{number}, which its inventory names")
        if first is None:
            self.done.there += 1
            return
        folder = self._scratch / str(len(self._finished))
        folder.mkdir()
        self.done.objects += not inventory.head
        for number in range(1, inventory.head + 1):
            name = f"v{number}"
            shutil.copytree(place / name, folder / name, copy_function=_link)
        if inventory.head:
            _link(place / ocfl.OBJECT_MARK, folder / ocfl.OBJECT_MARK)
        else:
            (folder / ocfl.OBJECT_MARK).write_bytes(b"ocfl_object_1.1\n")
        for version in chain([first], new):
            self._add_version(folder, inventory, version)
        _write_inventory(folder, inventory)
        self._finished.append((folder, place))
        if len(self._finished) >= _OBJECTS or self._unsynced >= _BYTES:
            self.flush()

    def flush(self) -> None:
        """Sync the finished objects, and move them to their places."""
        staging.sync()
        for folder, place in self._finished:
            if place.exists():
                away = folder.with_name(f"{folder.name}-before")
                staging.take(place, self._target, away)
                staging.move(folder, place, self._target)
                shutil.rmtree(away)
            else:
                staging.move(folder, place, self._target)
        self._finished.clear()
        self._unsynced = 0

    def _add_version(
        self, folder: Path, inventory: ocfl.OcflInventory, version: OcflVersion
    ) -> None:
        number = inventory.head + 1
        (folder / f"v{number}").mkdir()
        state: dict[str, list[str]] = {}
        digests = inventory.digests()
        stored = inventory.fixity.setdefault("sha256", {})
        for file in version.files:
            sha256 = file.sha256
            if sha256 is not None and sha256 in stored:  # forward delta: these bytes are there
                digest = digests[stored[sha256][0]]
            else:
                path = f"v{number}/content/{file.path}"
                written, _ = write_file(folder / path, file.read(), ["sha512"])
                self.done.bytes += file.size
                self._unsynced += file.size
                digest = digests[path] = written["sha512"]
                inventory.manifest.setdefault(digest, []).append(path)
                if sha256 is not None:
                    stored[sha256] = [path]
            state.setdefault(digest, []).append(file.path)
        inventory.versions[number] = {
            "created": version.created,
            "message": version.message,
            "user": self._user,
            "state": state,
        }
        _write_inventory(folder / f"v{number}", inventory)
        self.done.versions += 1


def _inventory(place: Path) -> ocfl.OcflInventory:
    """Return the inventory of the object at a place. Raises DamagedStore."""
    try:
        data = (place / ocfl.INVENTORY).read_bytes()
        return ocfl.parse(data, (place / ocfl.SIDECAR).read_bytes(), str(place))
    except FileNotFoundError as error:
        raise DamagedStore(f"{place} lacks its inventory or the inventory's digest") from error


def _link(source: str | Path, to: str | Path) -> None:
    try:
        os.link(source, to)
    except OSError:  # a file system without hard links
        shutil.copy2(source, to)


def _write_inventory(folder: Path, inventory: ocfl.OcflInventory) -> None:
    data = inventory.to_json()
    (folder / ocfl.INVENTORY).write_bytes(data)
    (folder / ocfl.SIDECAR).write_bytes(ocfl.sidecar(data))
