"""Jinja2 templates of answers, their filters, and checks of an operator's own templates."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import jinja2
import jinja2.nodes
from markupsafe import Markup

from functions.kinds import KINDS
from functions.oai.render import template_filters
from functions.oai.render.copy_address import NO_COPIES, CopyAddresses
from functions.oai.render.loop import CONSTANT, Abouts, RecordLoop, about_variable, lines
from functions.oai.render.mets import MetsFilters
from functions.oai.render.template_filters import Tables
from functions.reading.record_rows import HEADER
from functions.snapshot import instant
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.oai_name import is_uri

_PARTS = (jinja2.nodes.Include, jinja2.nodes.Import, jinja2.nodes.FromImport, jinja2.nodes.Extends)
_EXPECTED_PART = (
    'expected {% include "crosswalks/part.xml" %} in exactly this form and at the end of its '
    "line; in other forms a change of the part goes undetected"
)
_EXPECTED_TABLE = (
    'expected lookup("t"), with the name of its table in quotes, and not within map; in other '
    "forms a change of the table goes undetected"
)
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
"""Exceptions of a template for a value of an unexpected type or a missing table."""


class Templates:
    """Templates of some folders; all but the last folder give only crosswalks, pages and tables.

    Each is compiled on first use. Thread-safe.
    """

    def __init__(self, places: Sequence[Path], abouts: Abouts, copies: CopyAddresses = NO_COPIES):
        self._tables = Tables(places)
        self.abouts = abouts
        own = (
            jinja2.PrefixLoader(
                {part: jinja2.FileSystemLoader(place / part) for part in ("crosswalks", "site")}
            )
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
            attribute=template_filters.attribute,
            copies=copies.find_files,
            gathered_copy=copies.find_gathered,
            copy=copies.find,
            hexadecimal=lambda value: value.hex().upper(),
            instant=instant.to_text,
            lookup=self._tables.look_up,
            mets=MetsFilters(copies).describe,
            parts=template_filters.parts,
            schema=lambda base_url, name: urljoin(base_url, f"schema/{name}"),
            utc=lambda value: f"{value.isoformat()}Z",
            raw=Markup,  # a harvest checked that the XML of each record is well-formed
        )
        for kind in KINDS.values():
            self._environment.filters.update(kind.filters())
        self._environment.tests["uri"] = is_uri
        self._loops: dict[tuple[str, str], RecordLoop] = {}
        self._makings: dict[str, list[str]] = {}

    def text(self, name: str, variables: Mapping[str, Any]) -> str:
        """Return the text of a template with these variables."""
        return self._environment.get_template(name).render(variables)

    def loop(self, name: str, crosswalk: str = "") -> RecordLoop:
        """Return a template as a loop; the word `crosswalk` in it includes that template."""
        if (name, crosswalk) not in self._loops:
            source = [*lines(self._read, name, crosswalk, tuple(self.abouts))]
            loop = RecordLoop(self._environment, source, crosswalk or name, self.abouts)
            self._loops[name, crosswalk] = loop
        return self._loops[name, crosswalk]

    def check(self, name: str, crosswalk: str, columns: Sequence[str]) -> None:
        """Check the syntax of a record's templates, and that items have the columns named there.

        Raises ConfigurationError, with file and line.
        """
        pieces = [*lines(self._read, name, crosswalk, tuple(self.abouts))]
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
        names = {*columns, *HEADER, *map(about_variable, self.abouts)}
        for unknown in sorted({*loop.names} - names):
            where, line = loop.use(unknown)
            raise ConfigurationError(
                f"{self.path(where)}, line {line}: items of this kind have no {unknown}; "
                f"there are {', '.join((*columns, *HEADER, *sorted(CONSTANT)))}"
            )

    def makings(self, name: str) -> list[str]:
        """Return the inputs of a template's output: its lines, and the tables that it names."""
        if name not in self._makings:
            source = "".join(line for line, _, _ in lines(self._read, name))
            tables: set[str] = set()
            if "lookup" in source:  # parsing would slow down a cold start
                nodes = self._environment.parse(source).find_all(jinja2.nodes.Filter)
                tables = {_table(node) for node in nodes if node.name == "lookup"}
            rows = (repr(sorted(self._tables.rows(t).items())) for t in sorted(tables))
            self._makings[name] = [source, *rows]
        return self._makings[name]

    def path(self, name: str) -> str:
        """Return the path of the template of that name."""
        return self._read(name)[1]

    def _check_call(self, node: jinja2.nodes.Node, where: str) -> None:
        assert isinstance(node, jinja2.nodes.Filter | jinja2.nodes.Test)
        is_filter = isinstance(node, jinja2.nodes.Filter)
        functions = self._environment.filters if is_filter else self._environment.tests
        if node.name not in functions:
            what = "filter" if is_filter else "test"
            raise ConfigurationError(f"{where}: there is no {what} {node.name}")
        try:
            if is_filter and node.name == "lookup":
                self._tables.rows(_table(node))
            # The filter of a map must be named, and must not be a lookup.
            if (is_filter and node.name == "map") and (
                node.dyn_args
                or any(
                    not isinstance(name, jinja2.nodes.Const) or name.value == "lookup"
                    for name in node.args[:1]
                )
            ):
                raise ConfigurationError(_EXPECTED_TABLE)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error


def _source(environment: jinja2.Environment, name: str) -> tuple[str, str]:
    """Return the text and path of a template. Raises ConfigurationError."""
    assert environment.loader is not None
    try:
        source, path, _ = environment.loader.get_source(environment, name)
    except (jinja2.TemplateNotFound, OSError, ValueError) as error:
        raise ConfigurationError(f"the template {name} cannot be read: {error}") from error
    return source, path or name


def _table(node: jinja2.nodes.Filter | jinja2.nodes.Test) -> str:
    """Return the table of a lookup. Raises ConfigurationError unless it is a literal."""
    if len(node.args) == 1 and not (node.kwargs or node.dyn_args or node.dyn_kwargs):
        (table,) = node.args
        if isinstance(table, jinja2.nodes.Const) and isinstance(table.value, str):
            return table.value
    raise ConfigurationError(_EXPECTED_TABLE)
