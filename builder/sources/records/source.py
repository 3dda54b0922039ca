"""Own records as a source of `sheaf ingest`: files that are recognised, or that tables name."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
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
from builder.sources.records.forms.charsets import find_decoder
from builder.sources.records.forms.form import ByteSource, FileForm, read_head
from builder.sources.records.ingest import RecordsIngest, RecordTable
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
from builder.store.folder import FolderStore
from functions.config.records import complete_table
from functions.snapshot import oai_name
from functions.snapshot.item_tables import OWN_READING

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
    declared, store = _find_declared(context), _find_store(context)
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
            if store and path.absolute().is_relative_to(store):
                others.append(path)
            elif (number := by_file.get(path.absolute())) is not None:
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


def _find_store(context: Context) -> Path | None:
    """Return the folder of the store: what is in it is no source, also of a folder around it."""
    return context.store.root.absolute() if isinstance(context.store, FolderStore) else None


def _find_defaults(context: Context) -> Sequence[str]:
    """Return the tables of the configuration, by a file of each that has one, else by name."""
    declared = _find_declared(context)
    return [str(files[0]) if files else name for name, files in declared.items()]


def _find_declared(context: Context) -> dict[str, list[Path]]:
    """Return the files of each table of the configuration."""
    home, files_of = context.configuration_path.parent.absolute(), {}
    store = _find_store(context) if context.configuration["records"] else None
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
            paths |= dict.fromkeys(p for p in matches if not (store and p.is_relative_to(store)))
        files_of[table["name"]] = [*paths]
    return files_of


def _recognise(path: Path) -> FileForm | None:
    """Return the form of a file; None if it holds no records, or cannot be read."""
    if _OTHERS.search(path.name):
        return None
    with suppress(RecordsError, OSError):
        return forms.recognise(read_head(path))
    return None


def _read(
    context: Context, declared: Mapping[str, Sequence[Path]], guessed: Mapping[Path, FileForm]
) -> SourceReport | None:
    """Read the tables and the other files; return None if all are known."""
    arguments, configuration = context.arguments, context.configuration
    find_namespace(context)
    recipes = read_all_recipes(context.store)
    guesses = list_guesses(recipes, configuration["records"])
    abandoned = frozenset(name for name, patterns in guesses.items() if not patterns)
    sources = [*find_readings(context.store)]
    earlier = {path for reading, path, _ in sources if reading.startswith(OWN_READING)}
    opening = _Opening(context, frozenset(earlier), guesses)
    tables = [
        opening.open(table, declared[table["name"]])
        for table in configuration["records"]
        if table["name"] in declared
    ]
    tables += _guess_tables(context, guessed, guesses)
    readings = frozenset(reading for reading, *_ in sources)
    home = find_home(context)
    with workdir.open_workdir(workdir.folder_of(home, None)) as work, work.scratch() as scratch:
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
            context.configuration_path.parent.absolute(),
        ).carry_out(tables)
    report.unread |= opening.unread
    report.passed = opening.passed
    if not (report.files or report.deleted or report.unread or report.losses):
        return None
    return SourceReport(
        report.text(),
        {"records": asdict(report)},
        faults=sum(report.faults.values()),
        failed="; ".join(report.list_failures()),
        new=report.records - report.changed,
        changed=report.changed,
        deleted=report.deleted,
    )


@dataclass(slots=True)
class _Opening:
    """What opens the tables of the configuration, of whose files `earlier` were read before.

    `guesses` are the patterns of tables of the store that are not declared. `unread` gets reasons
    for what no form reads, `passed` the files that are beside records.
    """

    context: Context
    earlier: frozenset[str]
    guesses: Mapping[str, Sequence[str]]
    unread: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)

    def open(self, table: Mapping[str, Any], paths: Sequence[Path]) -> RecordTable:
        """Return a table with its files. Raises UsageError for what it cannot mean."""
        home = self.context.configuration_path.parent.absolute()
        _check_table(table, home)
        files: dict[Path, FileForm] = {}
        others: list[str] = []
        missing = [n for n in table["files"] if self._is_missing(home, n, paths)]
        for path in paths:
            # What only lies in a folder must show by itself that it is a file of records.
            is_named = any(_is_named(home / pattern, path) for pattern in table["files"])
            try:
                with explaining("it", "read", RecordsError):
                    form = forms.find_form(table["form"])
                    form = form or forms.recognise(read_head(path), is_named)
            except RecordsError as error:
                self.unread[str(path)] = str(error)
                continue
            if form:
                files[path] = form
            elif is_named or str(path) in self.earlier:
                reason = "no form of records is recognised: declare its form"
                self.unread[str(path)] = reason if path.stat().st_size else "it is empty"
            else:
                others.append(str(path))
        is_whole = not missing and len(files) + len(others) == len(paths) > 0
        if table["query"]:
            is_whole = True
            files[_write_query(self.context, table)] = FileForm(
                "query", "a query", lambda head, is_declared: False, partial(_run_query, home)
            )
        elif not paths or (missing and not files):
            self.unread[", ".join(table["files"])] = "there is no such file"
        self.unread |= dict.fromkeys(missing if files else (), "there is no such file")
        if files:
            self.passed += others
        else:
            self.unread |= dict.fromkeys(others, "no form of records is recognised")
        follows = (n for n, p in self.guesses.items() if any(is_of(f, home, p) for f in paths))
        recipe = open_recipe(self.context.configuration, home, table)
        return RecordTable(recipe, files, is_whole=is_whole and bool(files), follows=(*follows,))

    def _is_missing(self, home: Path, name: str, paths: Sequence[Path]) -> bool:
        """Return whether a file or folder is not there, or what had files has none now."""
        pattern = home / name
        if not (_BRACES.search(name) or pattern.exists()):
            return True
        if any(_is_within(pattern, path) for path in paths):
            return False
        return any(_is_within(pattern, Path(path)) for path in self.earlier)


def _is_within(pattern: Path, path: Path) -> bool:
    return path.is_relative_to(pattern) or fnmatchcase(str(path), str(pattern))


def _is_named(pattern: Path, path: Path) -> bool:
    """Return whether a pattern names a file, or files of its suffix; a folder does not."""
    is_suffix = pattern.suffix not in ("", ".*") and fnmatchcase(path.name, pattern.name)
    return pattern == path or is_suffix


def _check_table(table: Mapping[str, Any], home: Path) -> None:
    """Refuse a form, an encoding or a query that cannot be meant. Raises UsageError."""
    reason = ""
    if table["form"] and forms.find_form(table["form"]) is None:
        names = ", ".join(form.name for form in forms.FORMS)
        reason = f"form is {table['form']}; known: {names}"
    if table["encoding"]:
        try:
            find_decoder(table["encoding"])(b"")
        except (LookupError, TypeError, ValueError):  # such as base64, which is no text
            reason = f"its encoding is unknown: {table['encoding']}"
    if table["query"]:
        reason = columns.check_query(table["query"], home)
    if reason:
        raise UsageError(f"[[records]] {table['name']}: {reason}")


def _write_query(context: Context, table: Mapping[str, Any]) -> Path:
    """Return a file with the query of a table, which is new each time: it is always carried out."""
    folder = find_home(context) / f"{workdir.KNOWN_PREFIX}queries"
    path = folder.absolute() / f"{table['name']}.sql"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(table["query"], "utf-8")
    return path


def _run_query(home: Path, path: ByteSource, options: ReadOptions) -> Iterator[RecordItem]:
    """Yield the rows of the query in a file. Files that it names are relative to sheaf.toml."""
    assert isinstance(path, Path)
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
