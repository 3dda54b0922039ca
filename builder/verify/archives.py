"""Checks that the archive files exist from which `/content` answers."""

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress

from builder.store.context import Context
from builder.store.findings import Finding
from functions.content.assembly import open_archives
from functions.content.protocols import Archives, ContentError
from functions.reading.duck_repository import DuckRepository
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

_SOURCES = f"SELECT DISTINCT source FROM {engine.table('$files')} WHERE captures > 0 ORDER BY 1"
_NEEDED = f"""
SELECT DISTINCT source FROM {engine.table("$files")} r JOIN (SELECT unnest($gone) AS source) g
    ON r.warc_filename = g.source OR starts_with(r.warc_filename, g.source || '/')
WHERE NOT deleted AND position NOT IN (FROM dead_positions) ORDER BY 1
"""


def archive_findings(context: Context, store: Writer) -> Iterator[Finding]:
    """Yield the archive files that captures of the newest snapshot need, and that are gone.

    Nothing is checked unless `content.serve` is on. Raises StoreError if a place does not answer.
    """
    if not context.configuration["content.serve"]:
        return
    try:
        catalogue = Catalogue(store)
        newest = catalogue.pointer().newest()
        if newest is None:
            return
        yield from _check(context, store, catalogue, catalogue.manifest(newest.snapshot))
    except (DamagedStore, MissingObject):
        return  # reported with the snapshots


def _check(
    context: Context, store: Writer, catalogue: Catalogue, manifest: Manifest
) -> Iterator[Finding]:
    def local(table: str) -> list[str]:
        return [str(store.local(file.key)) for file in catalogue.files(manifest, table)]

    uri, base = context.store_uri()
    with closing(DuckRepository(store)) as repository, engine.connect() as connection:
        archives = open_archives(
            repository, uri, base, context.configuration, context.reading_environment
        )
        if not (sources := local("sources")):
            return
        names = connection.execute(_SOURCES, {"files": sources}).fetchall()
        gone = [name for (name,) in names if not _exists(archives, name)]
        if not gone:
            return
        # The records are read only now: archive files of withdrawn captures may well be gone.
        connection.execute("CREATE TABLE dead_positions (position BIGINT)")
        if dead := local("dead"):
            sql = f"INSERT INTO dead_positions SELECT position FROM {engine.table('$files')}"
            connection.execute(sql, {"files": dead})
        values: dict[str, Sequence[str]] = {"files": local("records"), "gone": gone}
        for (name,) in connection.execute(_NEEDED, values).fetchall():
            problem = "captures of the newest snapshot are in it, but it is in no place of archives"
            yield Finding("archive-missing", name, problem)


def _exists(archives: Archives, name: str) -> bool:
    """Return whether the file is at one of its places."""
    for address in archives.candidates(name):
        with suppress(ContentError, MissingObject):
            archives.open(address, 0, 1).close()
            return True
    return False
