"""OCFL storage root on disk: adds objects, and versions to existing objects.

An object is created beside the root, synced, and renamed into it, so it is always complete. An
object that gets versions is recreated with hard links to its files, and replaces the old folder.
For a moment the object is missing. If the process ends at that moment, the next export creates the
object again.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.export import ocfl, staging
from builder.export.obi_source import LoggedObject, StoredObject
from builder.obi import content
from builder.runtime import Advance
from functions.snapshot import instant
from functions.snapshot.errors import DamagedStore, StoreError
from functions.snapshot.store import Reader

_OBJECTS, _BYTES = 1000, 256 << 20  # created before they are synced and moved


class ForeignRoot(StoreError):
    """The folder holds something other than an export of this store."""


@dataclass(frozen=True, slots=True)
class Rooted:
    """Result of an export to a storage root.

    `objects` and `versions` were added, with `bytes` of content; `there` counts objects that were
    already up to date.
    """

    objects: int
    versions: int
    bytes: int
    there: int


def export(
    store: Reader,
    held: Iterable[StoredObject],
    target: Path,
    user: dict[str, str],
    advance: Advance,
) -> Rooted:
    """Add all of `held` that the storage root at `target` lacks; create the root if necessary.

    `user` is the author of the versions, with `name` and perhaps `address`. `advance` is called
    with the number of objects. Raises ForeignRoot, UsageError, DamagedStore, MissingObject and
    StoreError.
    """
    with staging.beside(target) as scratch:
        root = _Root(store, target, scratch, user)
        root.open()
        for item in held:
            root.add(item)
            advance(1)
        root.flush()
        staging.sync()
        return Rooted(root.objects, root.versions, root.bytes, root.there)


class _Root:
    def __init__(self, store: Reader, target: Path, scratch: Path, user: dict[str, str]) -> None:
        self._store, self._target, self._scratch = store, target, scratch
        self._user = user
        self._made: list[tuple[Path, Path]] = []
        self._unsynced = 0
        self.objects = self.versions = self.bytes = self.there = 0

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
        made = self._scratch / "root"
        for name, data in ocfl.root_files().items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(data)
        staging.sync()
        made.rename(self._target)  # replaces an empty folder, if there is one

    def add(self, item: StoredObject) -> None:
        """Create the object, or add the versions that it lacks."""
        place = self._target / ocfl.place(item.id)
        last = len(item.versions)
        if (place / f"v{last + 1}").exists():
            raise ForeignRoot(f"{place} has more versions of {item.id} than the store")
        if (place / f"v{last}").exists():
            _check(_inventory(place), item, place)
            self.there += 1
            return
        made = self._scratch / str(len(self._made))
        made.mkdir()
        inventory = self._link_versions(item, place, made)
        self.objects += not inventory.head
        if not inventory.head:
            (made / ocfl.OBJECT_MARK).write_bytes(b"ocfl_object_1.1\n")
        for number, noted in list(enumerate(item.versions, 1))[inventory.head :]:
            self._add_version(made, inventory, number, noted)
        _write_inventory(made, inventory)
        self._made.append((made, place))
        if len(self._made) >= _OBJECTS or self._unsynced >= _BYTES:
            self.flush()

    def flush(self) -> None:
        """Sync the finished objects, and move them to their places."""
        staging.sync()
        for made, place in self._made:
            if place.exists():
                away = made.with_name(f"{made.name}-before")
                staging.take(place, self._target, away)
                staging.move(made, place, self._target)
                shutil.rmtree(away)
            else:
                staging.move(made, place, self._target)
        self._made.clear()
        self._unsynced = 0

    def _link_versions(self, item: StoredObject, place: Path, made: Path) -> ocfl.OcflInventory:
        """Link the object's existing files into `made`; return its inventory, or an empty one."""
        if not place.exists():
            return ocfl.OcflInventory(item.id)
        inventory = _inventory(place)
        _check(inventory, item, place)
        for number in range(1, inventory.head + 1):
            if not (place / f"v{number}").is_dir():
                raise DamagedStore(f"{place} lacks v{number}, which its inventory names")
        for number in range(1, inventory.head + 1):
            shutil.copytree(place / f"v{number}", made / f"v{number}", copy_function=_link)
        _link(place / ocfl.OBJECT_MARK, made / ocfl.OBJECT_MARK)
        return inventory

    def _add_version(
        self, made: Path, inventory: ocfl.OcflInventory, number: int, noted: LoggedObject
    ) -> None:
        state: dict[str, list[str]] = {}
        folder = f"v{number}/content"
        (made / folder).mkdir(parents=True)
        version, name = noted.version, ocfl.NAMES[noted.version.kind]
        paths = inventory.fixity.setdefault("sha256", {}).get(version.sha256)
        if paths:  # forward delta: an earlier version has these bytes
            digest = next(d for d, some in inventory.manifest.items() if paths[0] in some)
        else:
            digest = self._copy(version, made / folder / name)
            inventory.manifest.setdefault(digest, []).append(f"{folder}/{name}")
            inventory.fixity["sha256"][version.sha256] = [f"{folder}/{name}"]
        state[digest] = [name]
        line = content.row_line(version)
        (made / folder / ocfl.ROW).write_bytes(line)
        of_row = hashlib.sha512(line).hexdigest()
        inventory.manifest.setdefault(of_row, []).append(f"{folder}/{ocfl.ROW}")
        state.setdefault(of_row, []).append(ocfl.ROW)
        held: dict[str, Any] = {"created": _when(noted), "message": noted.what}
        inventory.versions[number] = held | {"user": self._user, "state": state}
        _write_inventory(made / f"v{number}", inventory)
        self.versions += 1

    def _copy(self, version: content.Version, to: Path) -> str:
        """Copy a version's bytes, verify them, and return their SHA-512."""
        digest = hashlib.sha512()
        with to.open("xb") as out:
            for part in content.read_parts(self._store, version.key, version.sha256):
                digest.update(part)
                out.write(part)
        self.bytes += version.bytes
        self._unsynced += version.bytes
        return digest.hexdigest()


def _inventory(place: Path) -> ocfl.OcflInventory:
    """Return the inventory of the object at a place. Raises DamagedStore."""
    try:
        data = (place / ocfl.INVENTORY).read_bytes()
        return ocfl.parse(data, (place / ocfl.SIDECAR).read_bytes(), str(place))
    except FileNotFoundError as error:
        raise DamagedStore(f"{place} lacks its inventory or the inventory's digest") from error


def _check(inventory: ocfl.OcflInventory, item: StoredObject, place: Path) -> None:
    """Raise ForeignRoot if the object's versions differ from those in the store."""
    for number, noted in enumerate(item.versions[: inventory.head], 1):
        if not _is_of(inventory, number, noted):
            raise ForeignRoot(
                f"{place}: its version {number} differs from that of {item.id} in the store"
            )


def _is_of(inventory: ocfl.OcflInventory, number: int, noted: LoggedObject) -> bool:
    """Return whether a version of an object is the logged one, by its time and its bytes."""
    digest = inventory.state(number).get(ocfl.NAMES[noted.version.kind], "")
    known = inventory.fixity.get("sha256", {}).get(noted.version.sha256, [])
    created = inventory.versions[number].get("created")
    return created == _when(noted) and bool(set(known) & set(inventory.manifest.get(digest, [])))


def _when(noted: LoggedObject) -> str:
    return instant.to_text(noted.when)


def _link(source: str | Path, to: str | Path) -> None:
    try:
        os.link(source, to)
    except OSError:  # a file system without hard links
        shutil.copy2(source, to)


def _write_inventory(folder: Path, inventory: ocfl.OcflInventory) -> None:
    data = inventory.to_json()
    (folder / ocfl.INVENTORY).write_bytes(data)
    (folder / ocfl.SIDECAR).write_bytes(ocfl.sidecar(data))
