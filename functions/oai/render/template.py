"""Templates, over Jinja2, as no other file but functions.oai.render.program knows.

What each record of a page needs (header, crosswalk) is compiled, includes and all, into one loop
over rows, in which the columns that the templates name are plain local variables.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import jinja2.nodes

from functions.oai.render import datacite, harvested, include, redif, text
from functions.oai.render.about import Container
from functions.oai.render.program import Program, Unsuited
from functions.oai.render.tables import Tables
from functions.oai.repository import Record
from functions.oai.repository_duckdb.page import HEADER, Page
from functions.oai.request import is_uri
from functions.snapshot import instant
from functions.snapshot.errors import ConfigurationError

_PARTS = (
    jinja2.nodes.Include,
    jinja2.nodes.Import,
    jinja2.nodes.FromImport,
    jinja2.nodes.Extends,
)
_EXPECTED_PART = (
    'expected {% include "crosswalks/part.xml" %}, written just so and at the end of its line; '
    "in any other form a change of the part would not be noticed"
)
_EXPECTED_TABLE = (
    'expected lookup("t"), with the name of its table in quotes, and not within map; '
    "in any other form a change of the table would not be noticed"
)
_CONSTANT = frozenset({"prefix", "schema_location", "repository_name"})
"""What a crosswalk knows besides the columns of an item: it is the same for all of a page."""

Abouts = Mapping[str, Container]
"""Containers of records, by the names of their templates."""

MANY = 64
"""Records of a page from which on a program is made use of."""

AFTER = 4_000
"""Records of such pages that come first: to make a program takes as long as it saves on so many."""

FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    ConfigurationError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a template raises where it cannot cope with a record's values, or lacks a table."""


class Templates:
    """The templates of some folders; of all but the last folder, crosswalks and tables alone.

    Each is compiled when it is first needed. May be used by many threads at once.
    """

    def __init__(self, places: Sequence[Path], abouts: Abouts):
        self._tables = Tables(places)
        self.abouts = abouts
        own = (
            jinja2.PrefixLoader({"crosswalks": jinja2.FileSystemLoader(place / "crosswalks")})
            for place in places[:-1]
        )
        self._environment = jinja2.Environment(
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            loader=jinja2.ChoiceLoader([*own, jinja2.FileSystemLoader(places[-1])]),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._read = partial(_source, self._environment)
        self._environment.filters.update(
            attribute=text.attribute,
            hexadecimal=text.hexadecimal,
            instant=instant.to_text,
            lookup=self._tables.looked_up,
            parts=text.parts,
            schema=text.schema,
            utc=text.utc,
            **redif.FILTERS,
            **datacite.FILTERS,
            **harvested.FILTERS,
        )
        self._environment.tests["uri"] = is_uri
        self._loops: dict[tuple[str, str], Loop] = {}
        self._makings: dict[str, list[str]] = {}

    def text(self, name: str, values: Mapping[str, Any]) -> str:
        """Return what a template makes of values."""
        return self._environment.get_template(name).render(values)

    def loop(self, name: str, crosswalk: str = "") -> "Loop":
        """Return a template as a loop; `crosswalk` is what it includes by that word."""
        if (name, crosswalk) not in self._loops:
            self._loops[name, crosswalk] = Loop(self._environment, name, crosswalk, self.abouts)
        return self._loops[name, crosswalk]

    def check(self, name: str, crosswalk: str, columns: Sequence[str]) -> None:
        """Look over what makes a record of those columns: the syntax, and the names in it.

        Raises ConfigurationError, with file and line.
        """
        pieces = [*include.lines(self._read, name, crosswalk, tuple(self.abouts))]
        for part in dict.fromkeys(place for _, place, _ in pieces):
            source, path = self._read(part)
            try:
                tree = self._environment.parse(source)
            except jinja2.TemplateSyntaxError as error:
                raise ConfigurationError(f"{path}, line {error.lineno}: {error.message}") from error
            for node in tree.find_all((jinja2.nodes.Filter, jinja2.nodes.Test)):
                self._check_call(node, f"{path}, line {node.lineno}")
        places = [f"{self.path(at)}, line {n}" for line, at, n in pieces if line.endswith("\n")]
        try:
            tree = self._environment.parse("".join(line for line, _, _ in pieces))
            for other in tree.find_all(_PARTS):
                raise ConfigurationError(f"{places[other.lineno - 1]}: {_EXPECTED_PART}")
            loop = self.loop(name, crosswalk)
        except jinja2.TemplateSyntaxError as error:
            where = places[min(error.lineno, len(places)) - 1]
            raise ConfigurationError(f"{where}: {error.message}") from error
        known = {*columns, *HEADER, *map(_about, self.abouts)}
        for unknown in sorted({*loop.names} - known):
            where, line = loop.use(unknown)
            raise ConfigurationError(
                f"{self.path(where)}, line {line}: items of this kind have no {unknown}; "
                f"there are {', '.join((*columns, *HEADER, *sorted(_CONSTANT)))}"
            )

    def makings(self, name: str) -> list[str]:
        """Return what a template's output comes of: its lines, and the tables that it names."""
        if name not in self._makings:
            source = "".join(line for line, _, _ in include.lines(self._read, name, "", ()))
            tables: set[str] = set()
            if "lookup" in source:  # to parse it takes a cold start some time
                nodes = self._environment.parse(source).find_all(jinja2.nodes.Filter)
                tables = {_table(node) for node in nodes if node.name == "lookup"}
            rows = (repr(sorted(self._tables.rows(t).items())) for t in sorted(tables))
            self._makings[name] = [source, *rows]
        return self._makings[name]

    def path(self, name: str) -> str:
        """Return where the template of that name lies."""
        return self._read(name)[1]

    def _check_call(self, node: jinja2.nodes.Node, where: str) -> None:
        assert isinstance(node, jinja2.nodes.Filter | jinja2.nodes.Test)
        is_filter = isinstance(node, jinja2.nodes.Filter)
        known = self._environment.filters if is_filter else self._environment.tests
        if node.name not in known:
            what = "filter" if is_filter else "test"
            raise ConfigurationError(f"{where}: there is no {what} {node.name}")
        try:
            if is_filter and node.name == "lookup":
                self._tables.rows(_table(node))
            elif is_filter and node.name == "map":
                _check_map(node)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error


class Loop:
    """A template that is rendered for many records at once."""

    def __init__(self, environment: jinja2.Environment, name: str, crosswalk: str, abouts: Abouts):
        pieces = [*include.lines(partial(_source, environment), name, crosswalk, tuple(abouts))]
        self._abouts = {_about(name): container for name, container in abouts.items()}
        source = "".join(line for line, _, _ in pieces)
        self._name = crosswalk or name
        self._places = [(at, n) for line, at, n in pieces if line.endswith("\n")]
        self._tree = environment.parse(source)
        self.names = tuple(sorted(_free(self._tree) - environment.globals.keys() - _CONSTANT))
        target = ", ".join(("_position", *self.names))
        # On one line with the source's first, so that its line numbers hold.
        code = environment.compile(
            "{% for " + target + " in _rows %}" + source + "{% endfor %}\n", name, self._name
        )
        self._template = jinja2.Template.from_code(environment, code, environment.globals)
        # Markupsafe's own spends two thirds of a page's time on making Markup of each value, only
        # for it to be joined to a plain text next.
        self._template.root_render_func.__globals__["escape"] = text.escape
        self._rendered = 0
        self._program = cache(partial(Program.of, environment, source, self.names, self._name))

    def render(
        self,
        records: Sequence[Record],
        constants: Mapping[str, str],
        since: datetime | None = None,
    ) -> list[str]:
        """Return the text of all records, in pieces; none of them is dated before `since`."""
        columns = {name: self._column(name, records, since) for name in self.names}
        if len(records) >= MANY:
            self._rendered += len(records)
            if self._rendered > AFTER and (program := self._program()) is not None:
                with suppress(Unsuited, *FAULTS):
                    return program.render(columns, len(records), constants)
        rows = zip(range(len(records)), *columns.values(), strict=True)
        return [self._template.render(constants, _rows=rows)]

    def place(self, error: BaseException) -> tuple[str, int]:
        """Return the template and the line that raised an error."""
        line, trace = 1, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._name:
                line = trace.tb_lineno
            trace = trace.tb_next
        return self._at(line)

    def use(self, name: str) -> tuple[str, int]:
        """Return the template and the line that use a variable first."""
        names = self._tree.find_all(jinja2.nodes.Name)
        return self._at(min((node.lineno for node in names if node.name == name), default=1))

    def _at(self, line: int) -> tuple[str, int]:
        return self._places[min(line, len(self._places)) - 1]

    def _column(
        self, name: str, records: Sequence[Record], since: datetime | None
    ) -> Sequence[Any]:
        if name in self._abouts:
            say = self._abouts[name]
            return [None if record.deleted else say(record) for record in records]
        try:
            values = _values(name, records)
        except KeyError:
            raise ConfigurationError(
                f"{self._name} asks for {name}, which items of this kind do not have"
            ) from None
        if name == "datestamp":  # records of a page share a few: each is written once
            texts = {date: instant.to_text(max(date, since or date)) for date in {*values}}
            return [texts[date] for date in values]
        return values


def _values(name: str, records: Sequence[Record]) -> Sequence[Any]:
    """Return what records have of that name. Raises KeyError."""
    if isinstance(records, Page):
        return records.column(name)
    if name in HEADER:
        return [getattr(record, name) for record in records]
    return [None if record.deleted else record.fields[name] for record in records]


def _source(environment: jinja2.Environment, name: str) -> tuple[str, str]:
    """Return the text of a template and where it lies. Raises ConfigurationError."""
    assert environment.loader is not None
    try:
        source, path, _ = environment.loader.get_source(environment, name)
    except (jinja2.TemplateNotFound, OSError, ValueError) as error:
        raise ConfigurationError(f"the template {name} cannot be read: {error}") from error
    return source, path or name


def _table(node: jinja2.nodes.Filter | jinja2.nodes.Test) -> str:
    """Return the table that a lookup names. Raises ConfigurationError where it is not plain."""
    if len(node.args) == 1 and not (node.kwargs or node.dyn_args or node.dyn_kwargs):
        (table,) = node.args
        if isinstance(table, jinja2.nodes.Const) and isinstance(table.value, str):
            return table.value
    raise ConfigurationError(_EXPECTED_TABLE)


def _check_map(node: jinja2.nodes.Filter | jinja2.nodes.Test) -> None:
    """Raise ConfigurationError for a map whose filter is a lookup, or might be."""
    if node.dyn_args or any(
        not isinstance(name, jinja2.nodes.Const) or name.value == "lookup" for name in node.args[:1]
    ):
        raise ConfigurationError(_EXPECTED_TABLE)


def _about(name: str) -> str:
    """Return the variable under which an about container's template finds what there is to say."""
    return f"about_{name}"


def _free(tree: jinja2.nodes.Template) -> set[str]:
    """Return the variables that a source takes from without, not those that it sets itself."""
    stored = {node.name for node in tree.find_all(jinja2.nodes.Name) if node.ctx == "store"}
    macros = {node.name for node in tree.find_all(jinja2.nodes.Macro)}
    return jinja2.meta.find_undeclared_variables(tree) - stored - macros
