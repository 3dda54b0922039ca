"""Own records as a source of `sheaf ingest`: files that are recognised, or that tables name."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from builder.errors import UsageError, explaining
from builder.intake import intake
from builder.intake.paths import STDIN, list_files
from builder.sources.readings import find_readings
from builder.sources.records import forms
from builder.sources.records.forms import columns
from builder.sources.records.forms.form import ByteSource, FileForm, read_head
from builder.sources.records.ingest import RecordsIngest, RecordsReport, RecordTable
from builder.sources.records.listed import list_guesses, read_all_recipes
from builder.sources.records.recipe import open_recipe
from builder.sources.records.record import ReadOptions, RecordItem, RecordsError
from builder.sources.source import (
    Claim,
    SourceInput,
    SourceReader,
    SourceReport,
    find_home,
    find_namespace,
)
from builder.store import workdir
from builder.store.context import Context
from builder.store.durable import writing
from functions.config.records import complete_table
from functions.snapshot import oai_name

_OTHERS = re.compile(
    r"\.(w?arc(\.gz)?|wacz|cdxj?(\.gz)?|rdf|redif)$|^harvest\.json$", re.IGNORECASE
)
"""Names of files that other sources read: they need not be opened."""
_NAME = re.compile(r"[^A-Za-z0-9\-_.]+")
_BRACES = re.compile(r"[*?\[]")


def claim(context: Context, inputs: Sequence[SourceInput]) -> Claim:
    """Take files that hold records, and tables of the configuration, by name or by a file.

    If a file of a table is named, all files of the table are read. Of a folder with archives, only
    MARC is taken: XML, JSON and CSV beside them are about the crawl.
    """
    declared = _find_declared(context)
    by_file: dict[Path, int] = {}
    number: int | None
    for number, (table, files) in enumerate(declared.items()):
        for path in files:
            if by_file.setdefault(path, number) != number:
                first = [*declared][by_file[path]]
                raise UsageError(f"[[records]] {first} and {table} both have {path}")
    rest: list[SourceInput] = []
    chosen: dict[str, None] = {}
    guessed: dict[Path, FileForm] = {}
    for source in inputs:
        if source.name in declared and not Path(source.name).exists():
            chosen[source.name] = None
            continue
        with explaining(source.name, "read"):
            is_there = source.name != STDIN and Path(source.name).exists()
        if (
            not is_there
        ):  # web archives, which take the rest, may know it, or say that it is missing
            rest.append(source)
            continue
        paths = source.files if source.files is not None else tuple(list_files([source.name]))
        is_mixed = len(paths) > 1 and any(_OTHERS.search(path.name) for path in paths)
        others = []
        for path in paths:
            if (number := by_file.get(path.absolute())) is not None:
                chosen[[*declared][number]] = None
            elif (form := _recognise(path)) and (form.name == "marc" or not is_mixed):
                guessed[path] = form
            else:
                others.append(path)
        if len(others) == len(paths):
            rest.append(source)
        elif others:
            rest.append(SourceInput(source.name, tuple(others), is_rest=True))
    if not (chosen or guessed):
        return Claim(rest)
    return Claim(rest, partial(_read, context, {name: declared[name] for name in chosen}, guessed))


def _find_defaults(context: Context) -> Sequence[str]:
    """Return the tables of the configuration, by a file of each that has one, else by name."""
    declared = _find_declared(context)
    return [str(files[0]) if files else name for name, files in declared.items()]


def _find_declared(context: Context) -> dict[str, list[Path]]:
    """Return the files of each table of the configuration."""
    home, files_of = context.configuration_path.parent.absolute(), {}
    for table in context.configuration["records"]:
        paths: dict[Path, None] = {}
        for pattern in table["files"]:
            place = home / pattern
            with explaining(pattern, "read"):
                if _BRACES.search(pattern) and not place.exists():
                    base = Path(place.anchor) if Path(pattern).is_absolute() else home
                    own = place.relative_to(base)
                    matches = sorted(path for path in base.glob(str(own)) if path.is_file())
                else:
                    matches = list_files([str(place)]) if place.exists() else []
            paths |= dict.fromkeys(matches)
        files_of[table["name"]] = [*paths]
    return files_of


def _recognise(path: Path, table: Mapping[str, Any] | None = None) -> FileForm | None:
    """Return the form of a file; None if it holds no records, or cannot be read."""
    if table and table["form"]:
        return forms.find_form(table["form"])
    if not table and _OTHERS.search(path.name):
        return None
    try:
        return forms.recognise(read_head(path), table is not None)
    except (RecordsError, OSError):
        return None


def _read(
    context: Context, declared: Mapping[str, Sequence[Path]], guessed: Mapping[Path, FileForm]
) -> SourceReport | None:
    """Read the tables and the other files; return None if all are known."""
    arguments, configuration = context.arguments, context.configuration
    find_namespace(context)
    unread: dict[str, str] = {}
    recipes = read_all_recipes(context.store)
    guesses = list_guesses(recipes, configuration["records"])
    abandoned = frozenset(name for name, patterns in guesses.items() if not patterns)
    tables = [
        _open_table(context, table, declared[table["name"]], unread, guesses)
        for table in configuration["records"]
        if table["name"] in declared
    ]
    tables += _guess_tables(context, guessed, guesses)
    readings = frozenset(reading for reading, *_ in find_readings(context.store))
    home = find_home(context)
    with workdir.open_workdir(workdir.folder_of(home, None)) as work:
        with work.scratch() as scratch:
            report = RecordsIngest(
                context.store,
                home,
                scratch,
                intake.run_name(context.now()),
                readings,
                arguments.again,
                None in arguments.accept_loss,
                recipes,
                abandoned,
            ).carry_out(tables)
        work.remove()
    report.unread |= unread
    if not (report.files or report.deleted or report.unread or report.losses):
        return None
    return _report(report)


def _report(report: RecordsReport) -> SourceReport:
    reasons = (report.unread | report.reasons).items()
    return SourceReport(
        report.text(),
        {"records": asdict(report)},
        faults=sum(report.faults.values()),
        failed="; ".join(f"{name}: {reason}" for name, reason in reasons),
        new=report.records - report.changed,
        changed=report.changed,
        deleted=report.deleted,
    )


def _open_table(
    context: Context,
    table: Mapping[str, Any],
    paths: Sequence[Path],
    unread: dict[str, str],
    guesses: Mapping[str, Sequence[str]],
) -> RecordTable:
    """Return a table of the configuration; `unread` gets the files that no form reads."""
    if table["form"] and forms.find_form(table["form"]) is None:
        names = ", ".join(form.name for form in forms.FORMS)
        raise UsageError(f"[[records]] {table['name']}: form is {table['form']}; known: {names}")
    files, is_whole = {}, True
    for path in paths:
        if form := _recognise(path, table):
            files[path] = form
        else:
            unread[str(path)] = "no form of records is recognised: declare its form"
    if table["query"]:
        files[_write_query(context, table)] = FileForm(
            "query", "a query", lambda head, is_declared: False, partial(_run_query, context)
        )
    elif not paths:
        unread[", ".join(table["files"])] = "there is no such file"
    home = context.configuration_path.parent
    for name in table["files"] if paths else ():
        if not (_BRACES.search(name) or (home / name).exists()):
            unread[name] = "there is no such file"
            is_whole = False
    base = home.absolute()
    return RecordTable(
        open_recipe(context.configuration, home, table),
        files,
        is_whole=is_whole and len(files) >= max(1, len(paths)),
        follows=tuple(n for n, p in guesses.items() if any(is_of(path, base, p) for path in paths)),
    )


def _write_query(context: Context, table: Mapping[str, Any]) -> Path:
    """Return a file with the query of a table, which is new each time: it is always carried out."""
    folder = find_home(context) / f"{workdir.KNOWN_PREFIX}queries"
    path = folder.absolute() / f"{table['name']}.sql"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(table["query"], "utf-8")
    return path


def _run_query(context: Context, path: ByteSource, options: ReadOptions) -> Iterator[RecordItem]:
    """Yield the rows of the query in a file. Files that it names are relative to sheaf.toml."""
    assert isinstance(path, Path)
    home = context.configuration_path.parent.absolute()
    yield from columns.read_query(path.read_text("utf-8"), home, options)


def _guess_tables(
    context: Context, files: Mapping[Path, FileForm], before: Mapping[str, Sequence[str]]
) -> Iterator[RecordTable]:
    """Yield a table for each file, or for the files of a folder that have one form.

    Files of a table that was guessed before are of that table, whatever else is beside them now.
    """
    home = context.configuration_path.parent.absolute()
    names = {table["name"] for table in context.configuration["records"]} | before.keys()
    groups: dict[tuple[Path, str], dict[Path, FileForm]] = {}
    settled: dict[str, dict[Path, FileForm]] = {}
    for path, form in files.items():
        place = path.absolute()
        name = next((n for n, patterns in before.items() if is_of(place, home, patterns)), None)
        group = (
            settled.setdefault(name, {})
            if name
            else groups.setdefault((place.parent, form.name), {})
        )
        group[place] = form
    tables = [(name, before[name], group) for name, group in settled.items()]
    for (folder, form_name), group in groups.items():
        several = sum(place == folder for place, _ in groups) > 1
        stem = next(iter(group)).name.partition(".")[0] if len(group) == 1 else folder.name
        if len(group) > 1 and several:
            stem += f"-{form_name}"
        base = name = _NAME.sub("-", stem).strip("-.") or "records"
        number = 1
        while name in names or not oai_name.is_table(name):
            number += 1
            name = f"{base}-{number}"
        names.add(name)
        if base in before:
            context.say(
                f"{folder}: its table is {name}, as {base} is that of "
                f"{', '.join(before[base]) or 'other files'}: declare [[records]] {base} if they "
                "hold the same records"
            )
        tables.append((name, _list_patterns(folder, group, home), group))
    for name, patterns, group in tables:
        table = complete_table({"name": name, "files": patterns})
        yield RecordTable(
            open_recipe(context.configuration, home, table, is_guess=True), group, is_guess=True
        )


def is_of(path: Path, home: Path, patterns: Sequence[str]) -> bool:
    """Return whether a file is one of those that a guess named: files, or `*.mrc` of a folder."""
    places = (home / pattern for pattern in patterns)
    return any(
        path == place or (path.parent == place.parent and fnmatchcase(path.name, place.name))
        for place in places
    )


def _list_patterns(folder: Path, group: Collection[Path], home: Path) -> list[str]:
    """Return what names the files of a folder and, if it can be said by their suffix, no others."""
    places = [*group]
    if len(group) > 1:
        suffixes = {path.suffix for path in group}
        pattern = f"*{suffixes.pop()}" if len(suffixes) == 1 else "*"
        if {path for path in folder.glob(pattern) if path.is_file()} == {*group}:
            places = [folder / pattern]
    return [str(p.relative_to(home) if p.is_relative_to(home) else p) for p in places]


READER = SourceReader(claim, _find_defaults)
