"""Loops: a template that is rendered for all records of a page at once.

The template becomes the body of one loop over rows, with its includes expanded. Its columns are
local variables of that loop.

Jinja2 by itself escapes each value and wraps it in Markup, which takes three times as long. So a
printed column is escaped beforehand, all rows at once, and other values pass a filter. Templates
with more complex statements, such as macros, keep Jinja2's own escaping.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
import jinja2.meta
from jinja2 import nodes

from functions.oai.render import template_filters
from functions.reading.record_rows import HEADER, DocumentPage, Page
from functions.reading.repository import PublishedRecord
from functions.snapshot import instant
from functions.snapshot.errors import ConfigurationError

Container = Callable[[PublishedRecord], Any]
Abouts = Mapping[str, Container]
"""About containers by the names of their templates."""

Line = tuple[str, str, int]
"""A source line, its template, and its line number there."""

CONSTANT = frozenset({"prefix", "schema_location", "repository_name"})
"""Variables of a crosswalk besides the item's columns; each has one value for a page."""

_AT_ONCE = 128
"""Documents that are parsed and rendered at a time."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_INCLUDE = re.compile(r'\{% include (?:"([^"]+)"|crosswalk|(abouts)) %\}\n')

_PLAIN = (nodes.Assign, nodes.For, nodes.If, nodes.Output, nodes.With)
"""Statements that print the same with Jinja2's escaping and with values escaped one by one."""
_AWARE = frozenset({"join", "replace", "urlize", "xmlattr"})
"""Jinja2 filters that depend on autoescaping."""

_ESCAPED = "_escaped_"
"""Prefix of a column whose values are escaped."""
_ATTRIBUTE = "_attribute_"
"""Prefix of a column whose values are escaped for an XML attribute."""


def lines(
    read: Callable[[str], tuple[str, str]],
    name: str,
    crosswalk: str = "",
    abouts: Sequence[str] = (),
    above: tuple[str, ...] = (),
) -> Iterator[Line]:
    """Yield a template's lines, with its includes expanded.

    `read` returns a template's text and path, and raises ConfigurationError. The words `crosswalk`
    and `abouts` in a template include the templates given by these arguments.
    """
    if name in above:
        raise ConfigurationError(f"{above[-1]} includes {name}, which includes it")
    try:
        source = read(name)[0]
    except ConfigurationError as error:
        raise ConfigurationError(f"{error} ({' in '.join(reversed(above))})") from error
    for number, line in enumerate(_LINE.findall(source), 1):
        line = line if line.endswith("\n") else line + "\n"
        include = _INCLUDE.search(line)
        if include is None:
            yield line, name, number
            continue
        if line[: include.start()].strip():
            yield line[: include.start()], name, number
        included = [include[1] or crosswalk]
        if include[2]:
            included = [f"about/{about}.xml" for about in abouts]
        for other in included:
            yield from lines(read, other, crosswalk, abouts, (*above, name))


class RecordLoop:
    """A compiled template that loops over the records of a page."""

    def __init__(
        self, environment: jinja2.Environment, source: Sequence[Line], name: str, abouts: Abouts
    ):
        """`name` stands for the template in tracebacks. Raises TemplateSyntaxError."""
        self._name = name
        self._abouts = {about_variable(name): container for name, container in abouts.items()}
        self._places = [(template, number) for line, template, number in source if line[-1] == "\n"]
        tree = environment.parse("".join(line for line, _, _ in source))
        stored = {node.name for node in tree.find_all(nodes.Name) if node.ctx == "store"}
        stored |= {node.name for node in tree.find_all(nodes.Macro)}
        free = jinja2.meta.find_undeclared_variables(tree) - stored
        free -= environment.globals.keys() | CONSTANT
        self.names = tuple(sorted(free))
        """The columns that the template needs."""
        self._uses = {node.name: node.lineno for node in reversed([*tree.find_all(nodes.Name)])}
        self._escaped: list[str] = []
        if _is_plain(tree):
            stored = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
            self._escaped = _escape_columns(tree, free - stored)
            environment = environment.overlay(autoescape=False)
            environment.filters = {**environment.filters, **_FILTERS}
        columns = ("_position", *self.names, *self._escaped)
        code = environment.compile(_over_rows(tree, columns, environment), name, name)
        self._template = jinja2.Template.from_code(environment, code, environment.globals)

    def render(
        self,
        records: Sequence[PublishedRecord],
        constants: Mapping[str, str],
        since: datetime | None = None,
    ) -> str:
        """Return the text of all records; their datestamps are raised to at least `since`."""
        if not isinstance(records, DocumentPage):
            return self._render(records, constants, since)
        parts = records.parse(_AT_ONCE)
        return "".join([self._render(part, constants, since) for part in parts])

    def _render(
        self,
        records: Sequence[PublishedRecord],
        constants: Mapping[str, str],
        since: datetime | None,
    ) -> str:
        columns = {name: self._column(name, records, since) for name in self.names}
        escaped = (_escape(name, columns) for name in self._escaped)
        rows = zip(range(len(records)), *columns.values(), *escaped, strict=True)
        return self._template.render(constants, _rows=rows)

    def place(self, error: BaseException) -> tuple[str, int]:
        """Return the template and the line that raised an error."""
        line, trace = 1, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._name:
                line = trace.tb_lineno
            trace = trace.tb_next
        return self._at(line)

    def use(self, name: str) -> tuple[str, int]:
        """Return the template and the line that first use a variable."""
        return self._at(self._uses.get(name, 1))

    def _at(self, line: int) -> tuple[str, int]:
        return self._places[min(line, len(self._places)) - 1]

    def _column(
        self, name: str, records: Sequence[PublishedRecord], since: datetime | None
    ) -> Sequence[Any]:
        if name in self._abouts:
            container = self._abouts[name]
            return [None if record.deleted else container(record) for record in records]
        try:
            column = _column(name, records)
        except KeyError:
            raise ConfigurationError(
                f"{self._name} asks for {name}, which items of this kind do not have"
            ) from None
        if name == "datestamp":  # records of a page share a few dates: each is formatted once
            texts = {date: instant.to_text(max(date, since or date)) for date in {*column}}
            return [texts[date] for date in column]
        return column


def about_variable(name: str) -> str:
    """Return the variable that holds the content of an about container."""
    return f"about_{name}"


def _column(name: str, records: Sequence[PublishedRecord]) -> Sequence[Any]:
    """Return the records' values of that name. Raises KeyError."""
    if isinstance(records, Page):
        return records.column(name)
    if name in HEADER:
        return [getattr(record, name) for record in records]
    return [None if record.deleted else record.fields[name] for record in records]


def _escape(name: str, columns: Mapping[str, Sequence[Any]]) -> Sequence[str]:
    """Return the escaped column of that name."""
    if name.startswith(_ATTRIBUTE):
        return template_filters.attributes(columns[name.removeprefix(_ATTRIBUTE)])
    return template_filters.escape_all(columns[name.removeprefix(_ESCAPED)])


def _is_plain(tree: nodes.Template) -> bool:
    """Return whether a template prints the same if each printed value is escaped by itself."""
    for statement in tree.find_all(nodes.Stmt):
        if not isinstance(statement, _PLAIN):
            return False
        if isinstance(statement, nodes.For) and statement.recursive:
            return False
    filters = {node.name for node in tree.find_all(nodes.Filter)}
    mapped = {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)}
    return not _AWARE & (filters | mapped) and tree.find(nodes.Concat) is None


def _over_rows(
    tree: nodes.Template, columns: Sequence[str], environment: jinja2.Environment
) -> nodes.Template:
    """Return a template that prints `tree` for each of `_rows`, which have these columns."""
    target = nodes.Tuple([nodes.Name(name, "store") for name in columns], "store")
    loop = nodes.For(target, nodes.Name("_rows", "load"), tree.body, [], None, False)
    whole = nodes.Template([loop], lineno=1)
    whole.set_lineno(1)
    whole.set_environment(environment)
    return whole


def _escape_columns(tree: nodes.Template, columns: set[str]) -> list[str]:
    """Escape what a tree that is_plain prints; return the names of the escaped columns it needs.

    A printed column is replaced by its escaped one, another value is filtered. `columns` are the
    variables that the template reads without setting them.
    """
    names = set()
    for output in tree.find_all(nodes.Output):
        for index, node in enumerate(output.nodes):
            is_attribute = isinstance(node, nodes.Filter) and node.name == "attribute"
            prefix = _ATTRIBUTE if is_attribute else _ESCAPED
            column = node.node if isinstance(node, nodes.Filter) and is_attribute else node
            if isinstance(column, nodes.Name) and column.name in columns:
                name = prefix + column.name
                names.add(name)
                output.nodes[index] = nodes.Name(name, "load", lineno=node.lineno)
            elif prefix == _ESCAPED and not isinstance(node, nodes.TemplateData):
                output.nodes[index] = nodes.Filter(
                    node, "_escape", [], [], None, None, lineno=node.lineno
                )
    return sorted(names)


_FILTERS = {
    "attribute": template_filters.attribute_text,
    "_escape": template_filters.escape,
}
"""The filters that the rewritten trees use."""
