"""What the store has of the own records of a table: in the newest snapshot, and in the intake."""

import json
from collections.abc import Iterator
from contextlib import suppress

from builder.intake import intake
from builder.snapshot import query
from functions.snapshot.errors import NothingPublished
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

# Most identifiers show their table; those that a file gave do not, and few documents are read.
_OF_TABLE = (
    "NOT deleted AND (starts_with(identifier, $own || $name || ',') "
    "OR NOT starts_with(identifier, $own) AND document ->> '$.repository' = $name)"
)
_LISTED = f"SELECT {{}} FROM records WHERE kind = 'record' AND {_OF_TABLE}"
_RECIPES = (
    "SELECT DISTINCT part, name, recipe "
    "FROM read_parquet($files, filename = 'part', hive_partitioning = false)"
)
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
    """Return the recipe of each table in the newest snapshot."""
    newest = Catalogue(store).pointer().newest()
    return {} if newest is None else dict(Catalogue(store).manifest(newest.snapshot).recipes)


def read_waiting_recipes(store: Writer) -> dict[str, str]:
    """Return the recipe of each table in the intake, that of the latest run."""
    if not (files := _list_waiting(store, "own_tables")):
        return {}
    with engine.connect_reader() as connection:
        rows = connection.execute(_RECIPES, {"files": files}).fetchall()
    return {name: recipe for _, name, recipe in sorted(rows, key=lambda row: files.index(row[0]))}


def read_guesses(store: Writer) -> dict[str, list[str]]:
    """Return the patterns of the files of each table by its name; none if it was declared."""
    recipes = {**read_recipes(store), **read_waiting_recipes(store)}
    return {name: json.loads(recipe)[1].get("files", []) for name, recipe in recipes.items()}


def _list_waiting(store: Writer, table: str) -> list[str]:
    """Return local files of a table of the intake."""
    runs = [run for run in intake.runs(store) if not run.published]
    return intake.files(store, runs, intake.keys_of(store, runs), table) if runs else []
