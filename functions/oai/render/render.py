"""Rendering of answers to XML, and of the page for people to HTML.

The renderer leaves out records that cannot be rendered. Tokens, cursors and sizes count them.
"""

import hashlib
import json
import logging
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from functions.config.configuration import Configuration
from functions.kinds import DOCUMENTED, IN_FORMATS, KINDS, WITH_OFFERS, find_kind
from functions.oai.answer import Answer, ColumnsOf, OneRecord, Read, RecordList
from functions.oai.format import (
    AS_IT_CAME,
    TEMPLATES,
    Format,
    Formats,
    folders,
    select_available,
)
from functions.oai.render import about, template_filters
from functions.oai.render.copy_address import NO_COPIES, CopyAddresses
from functions.oai.render.loop import Abouts, RecordLoop
from functions.oai.render.template import FAULTS, Templates
from functions.reading.record_rows import DOCUMENT, runs
from functions.reading.repository import PublishedRecord
from functions.snapshot.errors import ConfigurationError

_PLACE = "\x00items\x00"
_COPY = re.compile(r"\|\s*(?:(?:gathered_)?cop(?:y|ies)|mets)\b")
"""The filters that print `content.address`."""
_LOG = logging.getLogger("sheaf")

_AT_ONCE = 1024
"""Maximum number of records written at once; work on those that do not fit is lost."""
_SAMPLES = 4
"""Number of records sampled to estimate the size of the first records."""
_HEADER, _MARKUP = 512, 2
"""Bytes of XML per record without its fields, and per character of the fields."""
_SAFE = 0.9
"""Share of the estimated capacity that is written next, because records differ in size."""


class NothingRenderedError(Exception):
    """No record of an answer could be rendered in its format."""


@dataclass(slots=True)
class UnrenderedRecords:
    """Records that a crosswalk could not render: the first fault, and their number."""

    first: str = ""
    count: int = 0

    def add(self, problem: str, count: int = 1) -> None:
        """Count one more failure, or `count` failures that begin with this fault."""
        self.first = self.first or problem
        self.count += count


class Sheet:
    """Writes the records of a page by `write`, up to `largest` bytes.

    A page ends before its limit if the next record would exceed a number of bytes. The cut depends
    only on the records, not on how many are written at once. So every server cuts a page at the
    same record, and a token always gives the same page. The first record is taken whatever its
    size: an empty page would end its list.
    """

    def __init__(
        self, write: Callable[[RecordList], tuple[bytes, UnrenderedRecords]], largest: int | None
    ) -> None:
        """`write` returns the XML of records; the XML of a batch is that of each record, joined."""
        self._write = write
        self._largest = math.inf if largest is None else largest
        self._bodies: list[bytes] = []
        self._missed = UnrenderedRecords()
        self._size = self.count = 0

    def take(self, part: RecordList) -> int:
        """Write the next records; return how many fit, on an empty sheet at least one."""
        taken, most = 0, _AT_ONCE
        while taken < part.count:
            rest = part.records[taken:]
            batch = rest[: min(most, self._next(rest))]
            body, missed = self._write(replace(part, records=batch))
            count, left = len(batch), self._largest - self._size
            if len(body) <= left or (count == 1 and not self.count):
                taken += count
                self._bodies.append(body)
                self._size += len(body)
                self.count += count
                self._missed.add(missed.first, missed.count)
            elif count == 1:
                break
            else:
                # Fewer each time, so that it ends with the single record that does not fit.
                most = max(1, min(count // 2, int(count * left / len(body) * _SAFE)))
        return taken

    def likely(self) -> int | None:
        """Return about how many more records fit; None if that is unlimited or unknown."""
        if not self._size or self._largest == math.inf:
            return None
        return max(0, int((self._largest - self._size) * self.count / self._size))

    def finish(self) -> tuple[bytes, ...]:
        """Return the XML of the records that fit; log those that were left out."""
        if self._missed.count:
            # One line a page: a crosswalk that fails for all records fails alike for each.
            more = self._missed.count - 1
            _LOG.error("%s%s", self._missed.first, f" (and {more} more)" if more else "")
        return tuple(self._bodies)

    @property
    def missed(self) -> int:
        """The number of records taken that could not be rendered."""
        return self._missed.count

    def _next(self, rest: Sequence[PublishedRecord]) -> int:
        if self._largest == math.inf:
            return len(rest)
        likely = self.likely()
        if likely is None:
            samples = rest[:: max(1, len(rest) // _SAMPLES)]
            characters = sum(len(str(record.fields)) for record in samples) // len(samples)
            likely = int(self._largest) // (_HEADER + _MARKUP * characters)
        return max(1, int(likely * _SAFE))


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
        page = content
        if isinstance(content, OneRecord):
            page = RecordList((content.record,), content.format, None, since=content.since)
        if isinstance(page, RecordList):
            xml = page.body
            if xml is None:
                sheet = self.sheet(answer.base_url)
                sheet.take(page)
                xml = sheet.finish()
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

    def render(
        self, empty: RecordList, read: Read, base_url: str, largest: int | None
    ) -> tuple[tuple[bytes, ...], int]:
        """Return the XML of the records that fit into `largest` bytes (see answer.Render)."""
        sheet = self.sheet(base_url, largest)
        while records := read(sheet.likely()):
            if sheet.take(replace(empty, records=records)) < len(records):
                break
        return sheet.finish(), sheet.count

    def page(self, name: str, variables: Mapping[str, Any]) -> bytes:
        """Return a page for people by the name of its template, in UTF-8."""
        return template_filters.clean((self.templates.text(f"site/{name}", variables),))

    def record(
        self, record: PublishedRecord, row: Format, base_url: str, repository_name: str
    ) -> str:
        """Return one record in a format. Raises ConfigurationError, with file and line."""
        loop = self._loop(row, record.kind)
        try:
            return loop.render([record], _constants(row, base_url, repository_name))
        except FAULTS as error:
            name, line = loop.place(error)
            raise ConfigurationError(
                f"{self.templates.path(name)}, line {line}: {error}"
            ) from error

    def fields(self, row: Format, kinds: Collection[str]) -> frozenset[str]:
        """Return a superset of the columns that a format needs of records of these kinds."""
        needed = frozenset(name for kind in kinds for name in self._loop(row, kind).names)
        if not DOCUMENTED.isdisjoint(kinds):
            needed |= {DOCUMENT}
        return needed | about.COLUMNS if self.templates.abouts else needed

    def _loop(self, row: Format, kind: str) -> RecordLoop:
        crosswalk = f"crosswalks/{row.crosswalks[kind]}"
        return self.templates.loop(find_kind(kind).template, crosswalk)

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

    def _render_part(self, content: RecordList, base_url: str) -> tuple[bytes, UnrenderedRecords]:
        """Return rendered records or, without a format, headers, and the failures."""
        row, since, missed = content.format, content.since, UnrenderedRecords()
        if row is None:
            headers, records = self.templates.loop("oai/header.xml"), content.records
            if content.within is not None:
                records = select_available(records, content.within)
            return template_filters.clean((headers.render(records, {}, since),)), missed
        constants = _constants(row, base_url, self._name)
        parts: list[str] = []
        for kind, run in runs(content.records):
            loop = self._loop(row, kind)
            if kind in IN_FORMATS:
                run = select_available(run, row)
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
                missed.add(f"{record.identifier} is left out of {row.prefix}: {where}: {error}")
        return parts


def lookups(
    configuration: Configuration, formats: Formats, renderer: Renderer
) -> tuple[Callable[[str], str | None], ColumnsOf]:
    """Return two functions of a prefix: a digest of its templates, and the columns they need.

    The digest of a prefix without a row is that of records as they came; the columns are None then,
    unless such records are offered. Shipped templates are compiled at the first call, and
    only those of kinds that there are, because a cold start has no time for all of them. An
    operator's own are read now: their files may change.
    """
    rows = {row.prefix: row for row in formats.rows}

    # Cached only for known prefixes: clients may send any number of others.
    digest = cache(lambda prefix: renderer.digest(rows[prefix]))
    columns = cache(lambda prefix, kinds: renderer.fields(rows[prefix], kinds))

    def fields(prefix: str, kinds: Collection[str]) -> frozenset[str] | None:
        offered = frozenset({DOCUMENT}) if WITH_OFFERS & {*kinds} else None
        if prefix not in rows:
            return offered and (offered | about.COLUMNS if renderer.templates.abouts else offered)
        present = rows[prefix].crosswalks.keys() & kinds
        if not present:
            return None  # a mirror has a format of that prefix, but not this one
        needed: frozenset[str] = columns(prefix, frozenset(present))
        return needed | (offered or frozenset())

    if configuration["formats.templates"]:
        for prefix in rows:
            digest(prefix)
            fields(prefix, KINDS)
    raw = cache(lambda: renderer.digest(AS_IT_CAME))
    return lambda prefix: digest(prefix) if prefix in rows else raw(), fields


def _constants(row: Format, base_url: str, repository_name: str) -> Mapping[str, str]:
    return {
        "prefix": row.prefix,
        "schema_location": f"{row.namespace} {row.schema_url(base_url)}",
        "repository_name": repository_name,
    }
