"""Rendering of answers to XML, and of the page for people to HTML.

The renderer leaves out records that cannot be rendered. If it leaves out a whole page, the list
continues with its next page: a `<ListRecords>` needs at least one record (OAI-PMH 2.0, section
4.5), and an error would end the harvest. Tokens, cursors and sizes count the omitted records.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from functions.oai.answer import Answer, ErrorList, OneRecord, RecordList
from functions.oai.format import TEMPLATES, Format, folders
from functions.oai.provider import Provider
from functions.oai.render import about, template_filters
from functions.oai.render.copy_address import NO_COPIES, CopyAddresses
from functions.oai.render.loop import Abouts, RecordLoop
from functions.oai.render.sheet import Sheet, UnrenderedRecords
from functions.oai.render.template import FAULTS, Templates
from functions.oai.request import NO_FORMAT, NO_RECORDS, OaiFault
from functions.reading.record_rows import DOCUMENT, runs
from functions.reading.repository import PublishedRecord
from functions.snapshot import documents, schema
from functions.snapshot.errors import ConfigurationError, StoreError

_RECORD = "oai/record.xml"
_RECORDS = {documents.HARVESTED: "oai/harvested.xml"}
_PLACE = "\x00items\x00"
_COPY = re.compile(r"\|\s*(?:(?:gathered_)?cop(?:y|ies)|mets)\b")
"""The filters that print `content.address`."""
_LOG = logging.getLogger("sheaf")

_MOST = 100_000  # records, so that a request ends even if a crosswalk fails for every record
_STRETCH = 2_000  # records at once, if pages are shorter


class NothingRenderedError(Exception):
    """No record of an answer could be rendered in its format."""


class Renderer:
    """Renders by templates. Thread-safe.

    Crosswalks and tables of `own`, an operator's folder, take precedence over those of `templates`;
    `places` are both folders. `abouts` are the about containers by template name, `copies` the
    addresses of archived copies.
    """

    def __init__(
        self,
        templates: Path = TEMPLATES,
        own: Path | None = None,
        repository_name: str = "",
        abouts: Abouts | None = None,
        copies: CopyAddresses = NO_COPIES,
    ):
        self.places = folders(templates, own)
        self.templates = Templates(self.places, abouts or {}, copies)
        self._name = repository_name
        self.copies = copies

    def document(self, answer: Answer) -> bytes:
        """Return the XML document of an answer, in UTF-8.

        A record whose crosswalk fails is left out and logged. Raises NothingRenderedError if no
        record is left.
        """
        content = answer.content
        xml: tuple[bytes, ...] | None = None
        if isinstance(content, RecordList):
            xml = content.xml or self._render_all(content, answer.base_url)
        elif isinstance(content, OneRecord):
            page = RecordList((content.record,), content.format, None, since=content.since)
            xml = self._render_all(page, answer.base_url)
        if xml is not None and not any(xml):
            raise NothingRenderedError(f"no record of {content.verb} could be rendered")
        variables = {"answer": answer, "content": content, "items": Markup(_PLACE)}
        frame = self.templates.text(f"oai/{content.verb}.xml", variables)
        if xml is None:
            return template_filters.clean((frame,))
        # The last match is the right one: client input is echoed only before the records.
        head, _, tail = frame.rpartition(_PLACE)
        return b"".join((template_filters.clean((head,)), *xml, template_filters.clean((tail,))))

    def sheet(self, base_url: str, largest: int | None = None) -> Sheet:
        """Return an empty sheet for records of at most `largest` bytes (None: unlimited)."""
        return Sheet(lambda part: self._render_part(part, base_url), largest)

    def page(self, name: str, variables: Mapping[str, Any]) -> bytes:
        """Return a page for people by the name of its template, in UTF-8."""
        return template_filters.clean((self.templates.text(f"site/{name}", variables),))

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
        kinds = row.crosswalks.keys()
        loops = [self.templates.loop(template(kind), _crosswalk(row, kind)) for kind in kinds]
        needed = frozenset(name for loop in loops for name in loop.names)
        if schema.DOCUMENTED & kinds:
            needed |= {DOCUMENT}
        return needed | about.COLUMNS if self.templates.abouts else needed

    def digest(self, row: Format) -> str:
        """Return a digest of a format's templates: equal digests mean equal XML."""
        makings = [f"{row.namespace} {row.schema}"]
        for kind, name in sorted(row.crosswalks.items()):
            makings += [kind, *self.templates.makings(f"crosswalks/{name}")]
        if any("repository_name" in text for text in makings):
            makings.append(self._name)
        if self.copies.templates and any(map(_COPY.search, makings)):
            makings += self.copies.templates
        return hashlib.sha256(json.dumps(makings).encode()).hexdigest()[:32]

    def _render_all(self, content: RecordList, base_url: str) -> tuple[bytes, ...]:
        sheet = self.sheet(base_url)
        sheet.take(content)
        return sheet.finish()

    def _render_part(self, content: RecordList, base_url: str) -> tuple[bytes, UnrenderedRecords]:
        """Return rendered records or, without a format, headers, and the failures."""
        row, since, missed = content.format, content.since, UnrenderedRecords()
        if row is None:
            headers, records = self.templates.loop("oai/header.xml"), content.records
            if content.within is not None:
                records = template_filters.filter_records(records, content.within)
            return template_filters.clean((headers.render(records, {}, since),)), missed
        constants = _constants(row, base_url, self._name)
        parts: list[str] = []
        for kind, run in runs(content.records):
            loop = self.templates.loop(template(kind), _crosswalk(row, kind))
            if kind == documents.HARVESTED:
                run = template_filters.select_available(run, row)
            try:
                parts.append(loop.render(run, constants, since))
            except FAULTS:
                parts += self._render_singly(loop, run, row, constants, since, missed)
        return template_filters.clean(parts), missed

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
        parts: list[str] = []
        for record in records:
            try:
                parts.append(loop.render([record], constants, since))
            except FAULTS as error:
                name, line = loop.place(error)
                where = f"{self.templates.path(name)}, line {line}"
                missed.add(f"{record.identifier} is left out of {row.prefix}: {where}: {error!r}")
        return parts


def template(kind: str) -> str:
    """Return the template for a record of that kind; it includes a crosswalk."""
    return _RECORDS.get(kind, _RECORD)


def _crosswalk(row: Format, kind: str) -> str:
    return f"crosswalks/{row.crosswalks[kind]}"


def _constants(row: Format, base_url: str, repository_name: str) -> Mapping[str, str]:
    return {
        "prefix": row.prefix,
        "schema_location": f"{row.namespace} {row.schema_url(base_url)}",
        "repository_name": repository_name,
    }


def render_document(
    provider: Provider,
    renderer: Renderer,
    pairs: Sequence[tuple[str, str]],
    url: str,
    limit: int | None = None,
    fits: Callable[[bytes], bool] = lambda body: True,
    most: int = _MOST,
    largest: int | None = None,
) -> tuple[Answer, bytes]:
    """Return the answer to the decoded pairs of a request to `url`, and its XML in UTF-8.

    `limit` shortens the page of a list, and so does `largest`, in bytes of records. A record whose
    document does not fit even alone counts as one that cannot be rendered. Raises StoreError if the
    store fails, or if `most` records in a row cannot be rendered.
    """
    base_url = provider.base_url(url)

    def new_sheet() -> Sheet | None:
        return None if largest is None else renderer.sheet(base_url, largest)

    original = answer = provider.answer(pairs, url, limit, new_sheet)
    size, passed, is_page = limit, 0, True
    while passed < most:
        try:
            body = renderer.document(answer)
            _check_size(answer, body, fits)
        except NothingRenderedError:
            content = answer.content
            if not (isinstance(content, RecordList) and not content.final and content.resumption):
                fault = OaiFault(NO_FORMAT, "This record cannot be rendered in that format.")
                if isinstance(content, RecordList):
                    text = "The matching records cannot be rendered in that format."
                    fault = OaiFault(NO_RECORDS, text)
                failure = replace(answer, content=ErrorList((fault,)))
                return failure, renderer.document(failure)
            # The next records are tried in batches, each twice as long as the one before.
            passed += content.count
            pairs = [("verb", content.verb), ("resumptionToken", content.resumption.text)]
            size, is_page = min(2 * content.count, _STRETCH), False
        else:
            if is_page:
                return answer, body
            size, is_page = limit, True  # some of the batch can be rendered: by pages from here on
        answer = _in_place(provider.answer(pairs, url, size, new_sheet), original)
    raise StoreError(f"{passed} records in a row could not be rendered; the log has the errors")


def _check_size(answer: Answer, body: bytes, fits: Callable[[bytes], bool]) -> None:
    """Raise NothingRenderedError if a single record is too large to be sent."""
    content = answer.content
    if isinstance(content, OneRecord):
        record = content.record
    elif isinstance(content, RecordList) and content.count == 1:
        record = content.records[0]
    else:
        return
    if not fits(body):
        _LOG.error("%s is left out: %d bytes of XML are too large", record.identifier, len(body))
        raise NothingRenderedError(record.identifier)


def _in_place(answer: Answer, original: Answer) -> Answer:
    """Return the answer to a later token as the answer to the original request.

    It keeps the original cursor, and no cache may keep it permanently.
    """
    content = answer.content
    if isinstance(content, RecordList) and isinstance(original.content, RecordList):
        rest, begun = content.resumption, original.content.resumption
        if rest is not None and begun is not None:
            rest = replace(rest, cursor=begun.cursor)
        content = replace(content, resumption=rest, pinned=False)
    return replace(answer, arguments=original.arguments, content=content)
