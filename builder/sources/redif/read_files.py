"""Files of earlier ingests: those that need not be read again, and those that could not be read.

Both are known from the newest snapshot and from the intake.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from builder.intake import intake
from builder.snapshot import query
from builder.sources.webarchives.ingest.splits import ArchiveFile, reading_of
from builder.sources.webarchives.rules import DocumentRules
from builder.text import tally
from functions.snapshot.errors import NothingPublished
from functions.snapshot.store import Writer
from functions.store import engine

NOTHING_NEW = "everything was ingested before"

_READINGS = (
    "SELECT reading, path, coalesce(max(captures), 0) FROM sources "
    "WHERE reading IS NOT NULL GROUP BY ALL ORDER BY ALL"
)
# What could not be read has neither digest nor format; a file of ReDIF always has a format.
_FAILED = (
    "SELECT path FROM sources GROUP BY path "
    "HAVING bool_and(coalesce(digest, '') = '' AND coalesce(format, '') = '') ORDER BY ALL"
)


def leave_known(
    store: Writer,
    files: Sequence[ArchiveFile],
    sets: Sequence[str],
    rules: DocumentRules,
    say: Callable[[str], None],
    home: Path,
) -> tuple[ArchiveFile, ...]:
    """Return the files that were not read before in this way (see splits.reading_of).

    The number of the others is said. A file that the user names is read again if it gave no
    captures, so that the reason is said again. A file that was moved is read again, so that its
    content is found. Relative paths are relative to `home`. Raises DamagedStore and StoreError.
    """
    readings: dict[str, dict[str, int]] = {}
    for reading, path, captures in find_readings(store):
        readings.setdefault(reading, {})[path] = captures

    def is_known(file: ArchiveFile) -> bool:
        paths = readings.get(reading_of(file, sets, rules) or "", {})
        if not any(p == file.label or ("://" not in p and _exists(home / p)) for p in paths):
            return False
        return max(paths.values()) > 0 or not file.named

    left = tuple(file for file in files if not is_known(file))
    if many := len(files) - len(left):
        say(f"already ingested: {many:,} of {tally(len(files), 'file')} (--again reads them)")
    return left


def list_failed(store: Writer, home: Path, say: Callable[[str], None]) -> list[str]:
    """Return the sources that could not be read, and were not read later.

    They are those of the newest snapshot and of the intake. Relative ones are relative to `home`.
    Files that are still missing are only said.
    """
    failed: dict[str, None] = {}
    with engine.connect_reader() as connection, suppress(NothingPublished):
        query.prepare_view(connection, store, "sources")
        failed = {path: None for (path,) in connection.execute(_FAILED).fetchall()}
    for source in (source for run in intake.runs(store) for source in run.sources):
        failed.pop(source.path, None)
        if "unreadable" in source.codes:
            failed[source.path] = None
    paths = [path if "://" in path else str(home / path) for path in failed]
    missing = {path for path in paths if "://" not in path and not _exists(Path(path))}
    for path in sorted(missing):
        say(f"{path} is still missing")
    return [path for path in paths if path not in missing]


def _exists(path: Path) -> bool:
    with suppress(OSError):
        return path.is_file()
    return False


def find_readings(store: Writer) -> Iterator[tuple[str, str, int]]:
    """Yield how and where files were read, and their captures; one may come twice."""
    with engine.connect_reader() as connection, suppress(NothingPublished):
        query.prepare_view(connection, store, "sources")
        yield from connection.execute(_READINGS).fetchall()
    for run in intake.runs(store):
        yield from (
            (source.reading, source.path, source.captures)
            for source in run.sources
            if source.reading
        )
