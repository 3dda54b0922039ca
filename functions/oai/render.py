"""Rendering: answers to XML and the page for people to HTML; the only file that knows Jinja2.

What each record of a page needs (header, crosswalk) is compiled, includes and all, into one loop
over rows, in which the columns that the templates name are plain local variables.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import jinja2
import jinja2.meta
import jinja2.nodes
from markupsafe import Markup, escape

from functions.oai.about import Container
from functions.oai.answer import Answer, OneRecord, RecordList
from functions.oai.format import TEMPLATES
from functions.oai.repository import Record
from functions.snapshot import instant
from functions.snapshot.errors import ConfigurationError

try:  # no public name, but five times as fast as the public ones; to XML all three say the same
    from markupsafe._speedups import _escape_inner as _escape_text
except ImportError:
    from html import escape as _escape_text

# What XML 1.0 (section 2.2) forbids even as a reference: one such byte spoils a whole document.
_CONTROLS = bytes(b for b in range(0x20) if b not in b"\t\n\r")
_NONCHARACTERS = "\ufffe\uffff"
_PLACE = "\x00items\x00"
_INCLUDE = re.compile(r'\{% include (?:"([^"]+)"|crosswalk|(abouts)) %\}\n')
Abouts = Mapping[str, Container]
_ITEM = tuple(field.name for field in fields(Record) if field.name != "fields")


class Renderer:
    """Renders by the templates of one folder; each is compiled when it is first needed.

    `abouts` are the containers of records, by the names of their templates.
    """

    def __init__(self, templates: Path = TEMPLATES, abouts: Abouts | None = None):
        self._templates = templates
        self._abouts = abouts or {}
        self._environment = jinja2.Environment(
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            loader=jinja2.FileSystemLoader(templates),
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._environment.filters.update(
            attribute=_attribute,
            instant=instant.to_text,
            lookup=self._lookup,
            parts=_parts,
            schema=_schema,
        )
        self._loops: dict[tuple[str, str], _Loop] = {}
        self._cached = lru_cache(maxsize=4096)(self._looked_up)

    def document(self, answer: Answer) -> bytes:
        """Return the XML document of an answer, in UTF-8."""
        content = answer.content
        items = ""
        if isinstance(content, RecordList):
            items = self._items(content.records, content.crosswalks)
        elif isinstance(content, OneRecord):
            items = self._items((content.record,), content.crosswalks)
        values = {"answer": answer, "content": content, "items": Markup(_PLACE)}
        frame = self._environment.get_template(f"oai/{content.verb}.xml").render(values)
        if not items:
            return _clean(frame)
        # The items join the frame as bytes: a page of them is copied once, not five times over.
        # The last place is the right one: what a stranger sent is echoed before the items only.
        head, _, tail = frame.rpartition(_PLACE)
        return b"".join(map(_clean, (head, items, tail)))

    def page(self, values: Mapping[str, Any]) -> bytes:
        """Return the page for people, in UTF-8."""
        return _clean(self._environment.get_template("site/index.html").render(values))

    def _items(self, records: Sequence[Record], crosswalks: Mapping[str, str] | None) -> str:
        """Return records or, without crosswalks, headers."""
        if crosswalks is None:
            return self._loop("oai/header.xml").render(records)
        # By position a publish's records of one kind lie together: few runs, mostly one.
        return "".join(
            self._loop("oai/record.xml", f"crosswalks/{crosswalks[kind]}").render([*run])
            for kind, run in groupby(records, key=attrgetter("kind"))
        )

    def _loop(self, name: str, crosswalk: str = "") -> "_Loop":
        if (name, crosswalk) not in self._loops:
            self._loops[name, crosswalk] = _Loop(self._environment, name, crosswalk, self._abouts)
        return self._loops[name, crosswalk]

    def _lookup(self, value: str | None, table: str) -> str:
        """Return what templates/tables/`table`.toml has for a media type, or an empty text."""
        return self._cached(value, table) if value else ""

    def _looked_up(self, value: str, table: str) -> str:
        rows = tomllib.loads((self._templates / "tables" / f"{table}.toml").read_text("utf-8"))
        exact = value.partition(";")[0].strip().lower()
        return str(rows.get(exact) or rows.get(exact.partition("/")[0] + "/*") or "")


class _Loop:
    """A template that is rendered for many records at once."""

    def __init__(self, environment: jinja2.Environment, name: str, crosswalk: str, abouts: Abouts):
        source = _spliced(environment, name, crosswalk, tuple(abouts))
        self._abouts = {f"about_{about}": abouts[about] for about in abouts}
        self._name = crosswalk or name
        self._names = tuple(sorted(_free(environment, source) - environment.globals.keys()))
        target = ", ".join(("_record", *self._names))
        # On one line with the source's first, so that line numbers hold up to the first include.
        code = environment.compile(
            "{% for " + target + " in _rows %}" + source + "{% endfor %}\n", name
        )
        self._template = jinja2.Template.from_code(environment, code, environment.globals)
        # Markupsafe's own spends two thirds of a page's time on making Markup of each value, only
        # for it to be joined to a plain text next.
        self._template.root_render_func.__globals__["escape"] = _escape

    def render(self, records: Sequence[Record]) -> str:
        """Return the text of all records."""
        columns = [self._column(name, records) for name in self._names]
        return self._template.render(_rows=zip(records, *columns, strict=True))

    def _column(self, name: str, records: Sequence[Record]) -> list[Any]:
        if name == "datestamp":  # records of a page share a few: each is written once
            texts = {d: instant.to_text(d) for d in {record.datestamp for record in records}}
            return [texts[record.datestamp] for record in records]
        if name in self._abouts:
            say = self._abouts[name]
            return [None if record.deleted else say(record) for record in records]
        if name in _ITEM:
            return [getattr(record, name) for record in records]
        try:
            return [None if record.deleted else record.fields[name] for record in records]
        except KeyError:
            raise ConfigurationError(
                f"{self._name} asks for {name}, which items of this kind do not have"
            ) from None


def _spliced(
    environment: jinja2.Environment, name: str, crosswalk: str, abouts: tuple[str, ...]
) -> str:
    """Return a template's source with its includes in it; the others are what varies of them."""
    assert environment.loader is not None
    source = environment.loader.get_source(environment, name)[0]

    def included(match: re.Match[str]) -> str:
        names = [match[1] or crosswalk]
        if match[2]:
            names = [f"about/{about}.xml" for about in abouts]
        return "".join(_spliced(environment, name, crosswalk, abouts) for name in names)

    return _INCLUDE.sub(included, source if source.endswith("\n") else source + "\n")


def _free(environment: jinja2.Environment, source: str) -> set[str]:
    """Return the variables that a source takes from without, not those that it sets itself."""
    tree = environment.parse(source)
    stored = {node.name for node in tree.find_all(jinja2.nodes.Name) if node.ctx == "store"}
    return jinja2.meta.find_undeclared_variables(tree) - stored


def _escape(value: Any) -> str:
    """Escape as markupsafe does, but to a plain text."""
    if value.__class__ is str:
        return _escape_text(value)
    return value if value.__class__ is Markup else str(escape(value))


@lru_cache(maxsize=1024)
def _parts(value: str | None) -> tuple[str, ...]:
    """Return the parts of a comma separated text, without empty ones."""
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def _attribute(value: str) -> Markup:
    """Escape a text so that an attribute keeps its line breaks (XML 1.0, section 3.3.3)."""
    text = str(escape(value))
    for character in "\t\n\r":
        text = text.replace(character, f"&#{ord(character)};")
    return Markup(text)


def _schema(base_url: str, name: str) -> str:
    """Return where a schema of our own is to be had."""
    return urljoin(base_url, f"schema/{name}")


def _clean(text: str) -> bytes:
    for character in _NONCHARACTERS:
        text = text.replace(character, "\ufffd")
    return text.encode("utf-8", "replace").translate(None, _CONTROLS)
