"""Renewal: what is made of records that the store has, after a change of crosswalks or formats.

The form in which a record came is in its document, so its file need not be read again.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lxml import etree

from builder.intake import intake
from builder.intake.intake import TABLES, part_path
from builder.sources.records.forms.marcxml import read_marcxml
from builder.sources.records.listed import list_documents, read_recipes, read_waiting_recipes
from builder.sources.records.recipe import OwnItem, Recipe
from builder.sources.records.record import SourceRecord
from builder.sources.records.source import open_recipe
from builder.store import workdir
from builder.store.context import Context
from builder.store.parquet.writer import RowWriter
from functions.config.records import complete_table
from functions.snapshot import oai_name


def renew_records(context: Context) -> int:
    """Make the records of tables anew whose recipe has changed, as a run of the intake.

    Returns how many there are. Raises ConfigurationError and StoreError.
    """
    tables = {table["name"]: table for table in context.configuration["records"]}
    stale, waiting = [], read_waiting_recipes(context.store)
    for name, text in read_recipes(context.store).items():
        table = tables.get(name) or complete_table(json.loads(text)[1])
        recipe = open_recipe(context, table, is_guess=name not in tables)
        if recipe.text != text and name not in waiting:
            stale.append(recipe)
    return _write(context, stale) if stale else 0


def _write(context: Context, recipes: list[Recipe]) -> int:
    run, count = intake.run_name(context.now()), 0
    with workdir.open_workdir(workdir.folder_of(Path(context.scratch()), None)) as work:
        with work.scratch() as scratch:
            rows, described, names = (
                RowWriter(part_path(scratch, table, run), TABLES[table], 256)
                for table in ("own_records", "own_tables", "set_names")
            )
            for recipe in recipes:
                context.say(f"making the records of {recipe.name} anew: their formats changed")
                for item in _make_items(context, recipe):
                    rows.append(item.row(recipe.name))
                    count += 1
                for row in recipe.describe():
                    described.append(row)
                for pair in recipe.table["set_names"].items():
                    names.append(pair)
            for writer in (rows, described, names):
                writer.close()
            intake.commit(context.store, intake.IntakeRun(run, (), own=count), scratch)
        work.remove()
    return count


def _make_items(context: Context, recipe: Recipe) -> Iterator[OwnItem]:
    for identifier, text in list_documents(context.store, recipe.namespace, recipe.name):
        document = json.loads(text)
        first, *others = (
            recipe.make(record, document["id"]) for record in _read(identifier, document, recipe)
        )
        for other in others:
            first.join(other)
        yield first


def _read(identifier: str, document: Mapping[str, Any], recipe: Recipe) -> Iterator[SourceRecord]:
    """Yield the records of an item as they came."""
    own = identifier if oai_name.is_foreign(identifier, recipe.namespace) else None
    source = document.get("source")
    if isinstance(source, dict):
        columns = {name: tuple(texts) for name, texts in source.items()}
        yield SourceRecord("", "columns", columns, "", own)
        return
    came = [entry for entry in document["records"] if "form" in entry]
    for entry in came or [{"form": document["form"], "metadata": source}]:
        xml, form = entry["metadata"], entry["form"]
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            huge_tree=True,
            remove_comments=True,
            remove_pis=True,
        )
        element = etree.fromstring(xml, parser)
        content = read_marcxml(element) if form == "marc" else element
        record = SourceRecord("", form, content, xml, own, sets=tuple(entry.get("sets", ())))
        yield replace(record, prefix=entry["prefix"]) if len(came) > 1 else record
