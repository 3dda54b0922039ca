"""The tables of figures of a snapshot: of the whole archive, and of its publishes."""

from functions.reading.figures import Figures, PublishFigures, compose, group_publishes
from functions.snapshot import schema
from functions.snapshot.figure_rows import CHANGES, COLUMNS, TABLE, FigureRows
from functions.snapshot.manifest import Manifest
from functions.store.catalog import Cache, Catalogue
from functions.store.files import FILE, Files

_FIGURES = f"SELECT {', '.join(COLUMNS)} FROM {FILE}"
_PUBLISHES = (
    f"SELECT {', '.join(schema.names('publishes'))} FROM {FILE} "
    "WHERE sequence BETWEEN $first AND $last ORDER BY sequence, kind"
)
_KEPT = 16  # results that are cached


class FigureTable:
    """Reads the tables of figures and of publishes, and caches recent results. Thread-safe."""

    def __init__(self, catalogue: Catalogue, files: Files) -> None:
        self._catalogue = catalogue
        self._files = files
        self._cache = Cache(_KEPT)

    def read(self, manifest: Manifest) -> Figures | None:
        """Return the figures of a snapshot; None if an earlier version of Sheaf published it."""

        def read() -> Figures | None:
            files = [*self._catalogue.files(manifest, TABLE)]
            rows = [row for file in files for row in self._files.rows(_FIGURES, file)]
            return compose(FigureRows.of(rows), manifest) if files else None

        return self._cache.get(manifest.snapshot, read)

    def publishes(
        self, manifest: Manifest, before: int | None, limit: int
    ) -> tuple[PublishFigures, ...]:
        """Return up to `limit` publishes with lower numbers than `before`, the newest first."""
        newest = len(manifest.sequences)
        last = newest if before is None else min(newest, before - 1)
        first = max(1, last - limit + 1)

        def read() -> tuple[PublishFigures, ...]:
            homes = self._catalogue.groups(manifest, "publishes", first, last)
            rows = self._files.look_up(_PUBLISHES, homes, first=first, last=last)
            if not rows:  # an earlier version of Sheaf published the snapshot
                rows = [
                    (s.number, kind, *(None,) * len(CHANGES))
                    for s in manifest.sequences[first - 1 : last]
                    for kind in sorted(s.records)
                ]
            return group_publishes(rows, manifest)[::-1]

        return self._cache.get((manifest.snapshot, first, last), read)
