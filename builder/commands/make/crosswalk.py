"""`sheaf crosswalk`."""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from builder.arguments import declare
from builder.errors import UsageError
from builder.sources.records import forms
from builder.sources.records.crosswalks import list_tables, load
from builder.sources.records.forms.form import read_head
from builder.sources.records.recipe import IdentifierError, OwnItem, open_recipe
from builder.sources.records.record import (
    ReadOptions,
    RecordFault,
    RecordItem,
    RecordsError,
    SourceRecord,
)
from builder.sources.records.record_forms import AS_IS, form_of
from builder.sources.records.schemas import has_schema, indent_xml
from builder.store.context import Context
from builder.text import tally
from functions.config.records import complete_table
from functions.snapshot.oai_name import MANDATORY


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    rows = {
        "file FILE": "a file of records",
        "--record RECORD": "number or identifier of the record",
    }
    declare(parser, rows, record={"default": "1"})


def run(context: Context) -> int:
    """Show what a record of a file becomes in each format.

    Formats are those of the table `[[records]]` that names the file, else all that the record can
    have. Without --record, it is the first record. Nothing is written.
    """
    path, home = Path(context.arguments.file), context.configuration_path.parent.absolute()
    table = complete_table({"name": "records", "files": str(path)})
    for declared in context.defaults["records"]:
        if any(fnmatch(str(path.absolute()), str(home / name)) for name in declared["files"]):
            table = declared
    try:
        form = forms.find_form(table["form"]) or forms.recognise(read_head(path), is_declared=True)
        if form is None:
            raise UsageError(f"{path}: no form of records is recognised")
        options: Any = {key: table[key] or None for key in ("element", "encoding", "separator")}
        records = form.read(path, ReadOptions(**options))
        place, item = _choose(context, table, records)
    except (RecordsError, IdentifierError) as error:
        raise UsageError(f"{path}: {error}") from error
    if context.arguments.json:
        print(json.dumps({"place": place, **asdict(item)}, ensure_ascii=False))
    else:
        faults = [f"{code}: {detail}" for code, detail in item.faults]
        print(f"{place}: {item.identifier}", *item.sets, *faults, sep="\n  ")
        for entry in item.entries:
            metadata = entry["metadata"]
            mark = "" if has_schema(entry["prefix"]) else " (no schema, not checked)"
            print(
                f"\n{entry['prefix']}{mark}:", metadata if "form" in entry else indent_xml(metadata)
            )
    return 0


def _choose(
    context: Context, table: Mapping[str, Any], items: Iterable[RecordItem]
) -> tuple[str, OwnItem]:
    """Return the place and the item of the record that the arguments name. Raises UsageError."""
    wanted, recipe, number, fault = context.arguments.record, None, 0, ""
    for record in items:
        if isinstance(record, RecordFault):
            fault = fault or f"; {record.place}: {record.detail}"
        if not isinstance(record, SourceRecord):
            continue
        number += 1
        if wanted.isdecimal() and int(wanted) != number:
            continue
        if recipe is None:
            form = form_of(record)
            names = [n for n in list_tables() if n.partition("-")[0] in (MANDATORY, form.prefix)]
            as_is = {form.prefix: AS_IS} if record.xml else {}
            walks = {MANDATORY: form.oai_dc, **{load(n).prefix: n for n in names}}
            formats = table["formats"] or {**as_is, **walks, **as_is}
            recipe = open_recipe(
                context.configuration,
                context.configuration_path.parent,
                {**table, "formats": formats},
            )
        item = recipe.make(record)
        if wanted.isdecimal() or wanted in (item.id, item.identifier):
            return record.place, item
    if not number:
        raise UsageError(f"{context.arguments.file}: it has no record that Sheaf reads{fault}")
    count = tally(number, "record")
    raise UsageError(f"{context.arguments.file}: none of its {count} is {wanted}{fault}")
