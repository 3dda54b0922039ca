"""Rendering of answers to XML, and of the page for people to HTML."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from functions.oai.answer import Answer, OneRecord, RecordList
from functions.oai.format import TEMPLATES, Format, folders
from functions.oai.render import about, harvested, values
from functions.oai.render.loop import Abouts, RecordLoop
from functions.oai.render.sheet import Sheet, UnrenderedRecords
from functions.oai.render.template import FAULTS, Templates
from functions.oai.repository import PublishedRecord
from functions.oai.repository_duckdb.rows import DOCUMENT, runs
from functions.snapshot import schema
from functions.snapshot.errors import ConfigurationError

_RECORD = "oai/record.xml"
_RECORDS = {harvested.KIND: "oai/harvested.xml"}
_PLACE = "\x00items\x00"


class NothingRenderedError(Exception):
    """No record of an answer could be rendered in its format."""


class Renderer:
    """Renders by templates. Thread-safe.

    Crosswalks and tables of `own`, an operator's folder, take precedence over those of `templates`;
    `places` are both folders. `abouts` are the about containers by template name.
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

        A record whose crosswalk fails is left out and logged. Raises NothingRenderedError if no
        record is left.
        """
        content = answer.content
        made: tuple[bytes, ...] | None = None
        if isinstance(content, RecordList):
            made = content.made or self._render_all(content, answer.base_url)
        elif isinstance(content, OneRecord):
            one = RecordList((content.record,), content.format, None, since=content.since)
            made = self._render_all(one, answer.base_url)
        if made is not None and not any(made):
            raise NothingRenderedError(f"no record of {content.verb} could be rendered")
        variables = {"answer": answer, "content": content, "items": Markup(_PLACE)}
        frame = self.templates.text(f"oai/{content.verb}.xml", variables)
        if made is None:
            return values.clean((frame,))
        # The last match is the right one: client input is echoed only before the records.
        head, _, tail = frame.rpartition(_PLACE)
        return b"".join((values.clean((head,)), *made, values.clean((tail,))))

    def sheet(self, base_url: str, largest: int | None = None) -> Sheet:
        """Return an empty sheet for records of at most `largest` bytes (None: unlimited)."""
        return Sheet(lambda part: self._render_part(part, base_url), largest)

    def page(self, variables: Mapping[str, Any]) -> bytes:
        """Return the page for people, in UTF-8."""
        return values.clean((self.templates.text("site/index.html", variables),))

    def record(
        self, record: PublishedRecord, row: Format, base_url: str, repository_name: str
    ) -> str:
        """Return one record in a format. Raises ConfigurationError, with file and line."""
        loop = self.templates.loop(template(record.kind), _crosswalk(row, record.kind))
        try:
            return loop.render([record], _constants(row, base_url, repository_name))
        except FAULTS as error:
            name, line = loop.place(error)
            raise ConfigurationError(
                f"{self.templates.path(name)}, line {line}: {error}"
            ) from error

    def fields(self, row: Format) -> frozenset[str]:
        """Return a superset of the columns that a format needs of a record."""
        loops = [self.templates.loop(template(k), _crosswalk(row, k)) for k in row.crosswalks]
        needed = frozenset(name for loop in loops for name in loop.names)
        if schema.DOCUMENTED & {*row.crosswalks}:
            needed |= {DOCUMENT}
        return needed | about.COLUMNS if self.templates.abouts else needed

    def digest(self, row: Format) -> str:
        """Return a digest of a format's templates: equal digests mean equal XML."""
        made = [f"{row.namespace} {row.schema}"]
        for kind, name in sorted(row.crosswalks.items()):
            made += [kind, *self.templates.makings(f"crosswalks/{name}")]
        if any("repository_name" in text for text in made):
            made.append(self._name)
        return hashlib.sha256(json.dumps(made).encode()).hexdigest()[:32]

    def _render_all(self, content: RecordList, base_url: str) -> tuple[bytes, ...]:
        sheet = self.sheet(base_url)
        sheet.take(content)
        return sheet.finish()

    def _render_part(self, content: RecordList, base_url: str) -> tuple[bytes, UnrenderedRecords]:
        """Return rendered records or, without a format, headers, and the failures."""
        row, since, missed = content.format, content.since, UnrenderedRecords()
        if row is None:
            headers = self.templates.loop("oai/header.xml")
            return values.clean((headers.render(_within(content), {}, since),)), missed
        constants = _constants(row, base_url, self._name)
        parts: list[str] = []
        for kind, run in runs(content.records):
            loop = self.templates.loop(template(kind), _crosswalk(row, kind))
            if kind == harvested.KIND:
                run = harvested.having(run, row.prefix)
            try:
                parts.append(loop.render(run, constants, since))
            except FAULTS:
                parts += self._render_singly(loop, run, row, constants, since, missed)
        return values.clean(parts), missed

    def _render_singly(
        self,
        loop: RecordLoop,
        records: Sequence[PublishedRecord],
        row: Format,
        constants: Mapping[str, str],
        since: datetime | None,
        missed: UnrenderedRecords,
    ) -> list[str]:
        """Render records one by one; `missed` gets those that fail."""
        made: list[str] = []
        for record in records:
            try:
                made.append(loop.render([record], constants, since))
            except FAULTS as error:
                name, line = loop.place(error)
                where = f"{self.templates.path(name)}, line {line}"
                missed.add(f"{record.identifier} is left out of {row.prefix}: {where}: {error!r}")
        return made


def template(kind: str) -> str:
    """Return the template for a record of that kind; it includes a crosswalk."""
    return _RECORDS.get(kind, _RECORD)


def _crosswalk(row: Format, kind: str) -> str:
    return f"crosswalks/{row.crosswalks[kind]}"


def _within(content: RecordList) -> Sequence[PublishedRecord]:
    """Return the page's records, without those unavailable in the format `within`."""
    if content.within is None:
        return content.records
    return harvested.filter_records(content.records, content.within.prefix)


def _constants(row: Format, base_url: str, repository_name: str) -> Mapping[str, str]:
    return {
        "prefix": row.prefix,
        "schema_location": f"{row.namespace} {row.schema_url(base_url)}",
        "repository_name": repository_name,
    }
