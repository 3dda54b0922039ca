"""Renewal: what is made of records that the store has, after a change of crosswalks or formats.

The form in which a record came is in its document, so its file need not be read again.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lxml import etree

from builder.errors import UsageError
from builder.intake import intake
from builder.intake.intake import TABLES, part_path
from builder.sources.records.forms.marcxml import read_marcxml
from builder.sources.records.forms.xml import PARSER
from builder.sources.records.known import hash_identifier
from builder.sources.records.listed import list_documents, read_recipes, read_waiting_recipes
from builder.sources.records.paths import PathError
from builder.sources.records.recipe import IdentifierError, Recipe, open_recipe
from builder.sources.records.record import SourceRecord, hash_record
from builder.store import workdir
from builder.store.context import Context
from builder.store.documents import encode_json
from builder.store.durable import writing
from builder.store.parquet.writer import RowWriter
from builder.store.workdir import KNOWN_PREFIX
from functions.config.records import complete_table
from functions.snapshot import oai_name
from functions.snapshot.store import Writer
from functions.store.catalog import Catalogue


def renew_records(context: Context) -> int:
    """Make the records of tables anew whose recipe has changed, as a run of the intake.

    Returns how many rows it has. Raises ConfigurationError and StoreError.
    """
    tables = {table["name"]: table for table in context.configuration["records"]}
    stale, waiting = {}, read_waiting_recipes(context.store)
    home, scratch_home = context.configuration_path.parent, Path(context.scratch())
    for name, text in read_recipes(context.store).items():
        if name in waiting:
            continue
        table = tables.get(name) or complete_table(json.loads(text)[1])
        recipe = open_recipe(context.configuration, home, table, is_guess=name not in tables)
        if recipe.text != text:
            stale[recipe] = text
    newest = Catalogue(context.store).pointer().newest()
    done = hash_record(
        str(newest and newest.snapshot), encode_json({r.text: text for r, text in stale.items()})
    ).hex()
    # What changes nothing makes no snapshot, so that the store goes on to have the old recipes.
    note = scratch_home / f"{KNOWN_PREFIX}renewed" / done
    if not stale or note.exists():
        return 0
    run, count = intake.run_name(context.now()), 0
    has_others = any(not other.published for other in intake.runs(context.store))
    folder = workdir.folder_of(scratch_home, None)
    with workdir.open_workdir(folder) as work, work.scratch() as scratch:
        rows, described, names = (
            RowWriter(part_path(scratch, table, run), TABLES[table], 256)
            for table in ("own_records", "own_tables", "set_names")
        )
        for recipe, text in stale.items():
            context.say(f"making the records of {recipe.name} anew: their formats changed")
            before = count
            try:
                for row in renew_items(context.store, recipe, recipe.name, text):
                    rows.append(row)
                    count += 1
            except PathError as error:
                raise UsageError(f"[[records]] {recipe.name}: {error}") from error
            if count > before or has_others:
                for values in recipe.describe():
                    described.append(values)
                for pair in recipe.table["set_names"].items():
                    names.append(pair)
        for writer in (rows, described, names):
            writer.close()
        if count or has_others:
            intake.commit(context.store, intake.IntakeRun(run, (), own=count), scratch)
    if not count:
        with writing(note):
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()
    return count


def renew_items(
    store: Writer,
    recipe: Recipe,
    name: str,
    text: str,
    has_item: Callable[[str], bool] = lambda identifier: False,
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of items of the table `name` in the store, whose recipe was `text`.

    Those that do not change have none, nor those of which `has_item` says that files have them. If
    the identifier is at other paths now, an item gets another, and its old one is deleted. It stays
    as it is if it has none there, or if another item has it.
    """
    before = json.loads(text)[1]["identifier"]
    taken = set[int]()
    for identifier, stored in list_documents(store, recipe.namespace, name):
        document = json.loads(stored)
        is_renamed = name != recipe.name or recipe.identifies_otherwise(document["form"], before)
        if has_item(identifier) and not is_renamed:
            continue
        try:
            id_ = None if is_renamed else document["id"]
            records = _read(identifier, document, recipe)
            item, *others = (recipe.make(record, id_) for record in records)
        except IdentifierError:
            continue
        for other in others:
            item.join(other)
        is_made = has_item(item.identifier)
        if not is_made:
            if hash_identifier(item.identifier) in taken:
                continue
            row = item.row(recipe.name)
            if row[-1] != document["digest"] and not (is_renamed and item.deleted):
                yield row
        taken.add(hash_identifier(item.identifier))
        is_free = not has_item(identifier) and hash_identifier(identifier) not in taken
        if item.identifier != identifier and is_free:
            yield identifier, True, [], [], None, None


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
        if entry.get("bare"):  # its paths are those of elements without a namespace
            xml = xml.replace(f' xmlns="{entry["namespace"]}"', "", 1)
        element = etree.fromstring(xml, PARSER)
        content = read_marcxml(element) if form == "marc" else element
        record = SourceRecord("", form, content, xml, own, sets=tuple(entry.get("sets", ())))
        yield replace(record, prefix=entry["prefix"]) if len(came) > 1 else record
