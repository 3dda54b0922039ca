"""Builds the contents of a store from the configuration."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from functions.config.configuration import Configuration
from functions.content.archives import PlacedArchives
from functions.content.contents import ArchivedContents
from functions.content.slices import KeptSlices
from functions.content.stored import ObjectReader
from functions.database.files import FILE
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.store import slice
from functions.store.bucket import bucket_of
from functions.store.catalog import Cache
from functions.store.slice import Slices

_PATHS = f"SELECT DISTINCT path FROM {FILE} WHERE source = $name ORDER BY path"


def archives(
    repository: DuckRepository,
    uri: str,
    base: Path,
    settings: Configuration,
    environment: Mapping[str, str],
) -> PlacedArchives:
    """Return a reader of the archive files of the store at `uri`, relative to `base`.

    `base` is the folder of the configuration; other folders are also relative to it. Raises
    StoreError if the address is invalid.
    """
    reached = Cache()

    def reads(place: str) -> Slices:
        return reached.get(place, lambda: _slices(place, base, settings, environment))

    places = [reads(place) for place in settings["content.archives"]]
    paths = _Paths(repository, [] if bucket_of(uri) else [(base / uri).resolve().parent])
    return PlacedArchives(places, reads(uri), paths.of, reads)


def contents(
    repository: DuckRepository,
    uri: str,
    base: Path,
    settings: Configuration,
    environment: Mapping[str, str],
) -> ArchivedContents:
    """Return the contents of the store at `uri` (see `archives`)."""
    placed = archives(repository, uri, base, settings, environment)
    objects = ObjectReader(repository.catalogue, repository.files)
    prefix = settings["redif.identifier_prefix"]
    return ArchivedContents(repository, objects, placed, placed.own, prefix)


class _Paths:
    """The places where archive files were ingested, by the newest snapshot."""

    def __init__(self, repository: DuckRepository, beside: Sequence[Path]) -> None:
        self._repository = repository
        self._beside = beside
        self._newest = 0

    def of(self, name: str) -> Sequence[str]:
        """Return the paths at which files of that name were read.

        Relative paths are relative to the configuration's folder. If only the store's address is
        known, they are also tried in the folders `beside` the store.
        """
        newest = self._repository.pointer().newest()
        if newest is None:
            return ()
        # An old pointer that was restored must not lead to an older snapshot.
        self._newest = max(self._newest, newest.snapshot)
        manifest = self._repository.manifest(self._newest)
        found: list[str] = []
        groups = self._repository.catalogue.groups(manifest, "sources", name, name)
        for file, _ in groups:
            found += [path for (path,) in self._repository.files.rows(_PATHS, file, name=name)]
        seen = [path for path in found if not Path(path).is_absolute() and "://" not in path]
        return [*found, *(str(folder / path) for folder in self._beside for path in seen)]


def _slices(
    place: str, base: Path, settings: Configuration, environment: Mapping[str, str]
) -> Slices:
    found = slice.of(place, base, settings, environment)
    return KeptSlices(found) if found.bucket("x")[0] else found
