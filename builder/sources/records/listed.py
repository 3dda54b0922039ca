"""What the store has of the own records of a table: in the newest snapshot, and in the intake."""

from collections.abc import Iterator
from contextlib import suppress

from builder.intake import intake
from builder.snapshot import query
from functions.snapshot.errors import NothingPublished
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

# Most identifiers show their table; those that a file gave do not, and few documents are read.
_OF_TABLE = (
    "NOT deleted AND (starts_with(identifier, $own || $name || ',') "
    "OR NOT starts_with(identifier, $own) AND document ->> '$.repository' = $name)"
)
_LISTED = f"SELECT {{}} FROM records WHERE kind = 'record' AND {_OF_TABLE}"
_WAITING = f"SELECT DISTINCT identifier FROM {engine.table('$files')} WHERE {_OF_TABLE}"


def list_live(store: Writer, namespace: str, name: str) -> Iterator[str]:
    """Yield the identifiers of the live items of a table; one may come twice."""
    values = {"own": f"oai:{namespace}:", "name": name}
    with engine.connect_reader() as connection, suppress(NothingPublished):
        query.prepare_view(connection, store, "records")
        for batch in engine.batches(connection, _LISTED.format("identifier"), values):
            yield from batch
    if files := _list_waiting(store, "own_records"):
        with engine.connect_reader() as connection:
            for batch in engine.batches(connection, _WAITING, {**values, "files": files}):
                yield from batch


def list_documents(store: Writer, namespace: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield identifier and document of the live items of a table in the newest snapshot."""
    values = {"own": f"oai:{namespace}:", "name": name}
    with engine.connect_reader() as connection:
        query.prepare_view(connection, store, "records")
        sql = _LISTED.format("identifier, document")
        for batch in engine.batches(connection, sql, values):
            yield from batch


def read_recipes(store: Writer) -> dict[str, str]:
    """Return the recipe of each table in the newest snapshot, without those that wait."""
    newest = Catalogue(store).pointer().newest()
    if newest is None:
        return {}
    manifest: Manifest = Catalogue(store).manifest(newest.snapshot)
    if not manifest.recipes:
        return {}
    recipes = dict(manifest.recipes)
    if files := _list_waiting(store, "own_tables"):
        with engine.connect_reader() as connection:
            sql = f"SELECT DISTINCT name FROM {engine.table('$files')}"
            for (name,) in connection.execute(sql, {"files": files}).fetchall():
                recipes.pop(name, None)
    return recipes


def _list_waiting(store: Writer, table: str) -> list[str]:
    """Return local files of a table of the intake."""
    runs = [run for run in intake.runs(store) if not run.published]
    return intake.files(store, runs, intake.keys_of(store, runs), table) if runs else []
