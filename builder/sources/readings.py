"""Files of earlier ingests: those that need not be read again, and those that could not be read.

Both are known from the newest snapshot and from the intake.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from builder.intake import intake
from builder.intake.paths import read_list
from builder.snapshot import query
from builder.store.context import Context
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


def list_names(context: Context) -> list[str]:
    """Return the sources of the arguments and of the list, and those that failed.

    Raises UsageError, DamagedStore and StoreError.
    """
    arguments, names = context.arguments, list(context.arguments.sources)
    if arguments.files_from:
        names += read_list(arguments.files_from)
    if arguments.retry:
        names += list_failed(context)
    return names


def list_failed(context: Context) -> list[str]:
    """Return the sources that could not be read, and were not read later.

    They are those of the newest snapshot and of the intake. Missing files are only said.
    """
    store, home = context.store, context.configuration_path.parent
    failed: dict[str, None] = {}
    with engine.connect_reader() as connection, suppress(NothingPublished):
        query.prepare_view(connection, store, "sources")
        failed = {path: None for (path,) in connection.execute(_FAILED).fetchall()}
    for source in (source for run in intake.runs(store) for source in run.sources):
        failed.pop(source.path, None)
        if "unreadable" in source.codes:
            failed[source.path] = None
    paths = [path if "://" in path else str(home / path) for path in failed]
    missing = {path for path in paths if "://" not in path and not is_file(Path(path))}
    for path in sorted(missing):
        context.say(f"{path} is still missing")
    return [path for path in paths if path not in missing]


def is_file(path: Path) -> bool:
    """Return whether a file is there; False if that cannot be known."""
    with suppress(OSError):
        return path.is_file()
    return False


def find_readings(store: Writer) -> Iterator[tuple[str, str, int]]:
    """Yield how and where files were read, and their captures; one may come twice."""
    with engine.connect_reader() as connection, suppress(NothingPublished):
        query.prepare_view(connection, store, "sources")
        yield from connection.execute(_READINGS).fetchall()
    for run in intake.runs(store):
        yield from ((s.reading, s.path, s.captures) for s in run.sources if s.reading)
