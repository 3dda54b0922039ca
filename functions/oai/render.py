"""Rendering: answers to XML, and the page for people to HTML."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from functions.oai import about, harvested, text
from functions.oai.answer import Answer, OneRecord, RecordList
from functions.oai.format import TEMPLATES, Format, folders
from functions.oai.page import runs
from functions.oai.repository import Record
from functions.oai.template import FAULTS, Abouts, Loop, Templates
from functions.oai.version import DOCUMENT
from functions.snapshot import schema
from functions.snapshot.errors import ConfigurationError

_RECORD = "oai/record.xml"
_RECORDS = {harvested.KIND: "oai/harvested.xml"}
_PLACE = "\x00items\x00"
_LOG = logging.getLogger("sheaf")


class NothingLeft(Exception):
    """No record of an answer could be made in its format."""


class Renderer:
    """Renders by templates. May be used by many threads at once.

    Crosswalks and tables of `own`, an operator's folder, go before those of `templates`; `places`
    are both. `abouts` are the containers of records, by the names of their templates.
    """

    def __init__(
        self,
        templates: Path = TEMPLATES,
        own: Path | None = None,
        repository_name: str = "",
        abouts: Abouts | None = None,
    ):
        self.places = folders(templates, own)
        self.templates = Templates(self.places, abouts or {})
        self._name = repository_name

    def document(self, answer: Answer) -> bytes:
        """Return the XML document of an answer, in UTF-8.

        A record that its crosswalk cannot make is left out, and told of in the log. Raises
        NothingLeft where none is left.
        """
        content = answer.content
        items: list[str] = []
        if isinstance(content, RecordList):
            records = _within(content)
            items = self._items(records, content.format, answer.base_url, content.since)
        elif isinstance(content, OneRecord):
            one = (content.record,)
            items = self._items(one, content.format, answer.base_url, content.since)
        values = {"answer": answer, "content": content, "items": Markup(_PLACE)}
        frame = self.templates.text(f"oai/{content.verb}.xml", values)
        if not items:
            return text.clean((frame,))
        # The last place is the right one: what a stranger sent is echoed before the items only.
        head, _, tail = frame.rpartition(_PLACE)
        return text.clean((head, *items, tail))

    def page(self, values: Mapping[str, Any]) -> bytes:
        """Return the page for people, in UTF-8."""
        return text.clean((self.templates.text("site/index.html", values),))

    def record(self, record: Record, row: Format, base_url: str, repository_name: str) -> str:
        """Return one record in a format. Raises ConfigurationError, with file and line."""
        loop = self.templates.loop(template(record.kind), _crosswalk(row, record.kind))
        try:
            return "".join(loop.render([record], _constants(row, base_url, repository_name)))
        except FAULTS as error:
            name, line = loop.place(error)
            raise ConfigurationError(
                f"{self.templates.path(name)}, line {line}: {error}"
            ) from error

    def fields(self, row: Format) -> frozenset[str]:
        """Return the columns that are needed of a record in a format, and perhaps others."""
        loops = [self.templates.loop(template(k), _crosswalk(row, k)) for k in row.crosswalks]
        needed = frozenset(name for loop in loops for name in loop.names)
        if schema.DOCUMENTED & {*row.crosswalks}:
            needed |= {DOCUMENT}
        return needed | about.COLUMNS if self.templates.abouts else needed

    def digest(self, row: Format) -> str:
        """Return a digest of what makes the XML of a format: equal for equal XML."""
        made = [f"{row.namespace} {row.schema}"]
        for kind, name in sorted(row.crosswalks.items()):
            made += [kind, *self.templates.makings(f"crosswalks/{name}")]
        if any("repository_name" in text for text in made):
            made.append(self._name)
        return hashlib.sha256(json.dumps(made).encode()).hexdigest()[:32]

    def _items(
        self,
        records: Sequence[Record],
        row: Format | None,
        base_url: str,
        since: datetime | None,
    ) -> list[str]:
        """Return records or, without a format, headers; none is dated before `since`."""
        if row is None:
            return self.templates.loop("oai/header.xml").render(records, {}, since)
        constants = _constants(row, base_url, self._name)
        parts: list[str] = []
        for kind, run in runs(records):
            loop = self.templates.loop(template(kind), _crosswalk(row, kind))
            if kind == harvested.KIND:
                run = harvested.having(run, row.prefix)
            try:
                parts += loop.render(run, constants, since)
            except FAULTS:
                parts += self._bearable(loop, run, row, constants, since)
        if not any(parts):
            raise NothingLeft(f"no record of {len(records)} could be made in {row.prefix}")
        return parts

    def _bearable(
        self,
        loop: Loop,
        records: Sequence[Record],
        row: Format,
        constants: Mapping[str, str],
        since: datetime | None,
    ) -> list[str]:
        """Return the records that can be made, one by one; the log tells of the others."""
        made: list[str] = []
        first, missed = "", 0
        for record in records:
            try:
                made += loop.render([record], constants, since)
            except FAULTS as error:
                missed += 1
                if not first:
                    name, line = loop.place(error)
                    where = f"{self.templates.path(name)}, line {line}"
                    first = f"{record.identifier} is left out of {row.prefix}: {where}: {error!r}"
        if first:
            # One line a page: where a crosswalk fails for everything, so does it for each alike.
            _LOG.error("%s%s", first, f" (and {missed - 1} more)" if missed > 1 else "")
        return made


def template(kind: str) -> str:
    """Return the template of a record of that kind; it includes a crosswalk."""
    return _RECORDS.get(kind, _RECORD)


def _crosswalk(row: Format, kind: str) -> str:
    return f"crosswalks/{row.crosswalks[kind]}"


def _within(content: RecordList) -> Sequence[Record]:
    """Return the page's records without headers of what cannot be had. Raises NothingLeft."""
    if content.within is None:
        return content.records
    found = harvested.sifted(content.records, content.within.prefix)
    if not found:
        raise NothingLeft(f"no record of {content.count} came in {content.within.prefix}")
    return found


def _constants(row: Format, base_url: str, repository_name: str) -> Mapping[str, str]:
    return {
        "prefix": row.prefix,
        "schema_location": f"{row.namespace} {row.schema_url(base_url)}",
        "repository_name": repository_name,
    }
