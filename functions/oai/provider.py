"""OAI-PMH 2.0 data provider without XML and HTTP: requests to answers (section 4).

Identify responses also follow the guidelines (section 4.2).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from functions.config.configuration import Configuration
from functions.http.http_message import show
from functions.kinds import IN_FORMATS, find_kind
from functions.oai.answer import (
    Answer,
    ColumnsOf,
    Content,
    ErrorList,
    FormatList,
    Identify,
    OneRecord,
    Render,
    Statement,
    parse_statement,
    read_rights,
)
from functions.oai.format import FormatDrift, Formats, select_available
from functions.oai.listing import ListService
from functions.oai.request import (
    GET_RECORD,
    IDENTIFY,
    LIST_FORMATS,
    LIST_IDENTIFIERS,
    LIST_RECORDS,
    LIST_SETS,
    NO_FORMAT,
    NO_FORMATS,
    NO_ITEM,
    UNREADABLE,
    OAIError,
    OaiFault,
    OaiRequest,
    error,
    parse,
)
from functions.oai.set_list import SetListService, configured_sets
from functions.oai.token import Token, find_manifest, is_known
from functions.reading.as_of import AsOf, PointerReading
from functions.reading.record_rows import DOCUMENT
from functions.reading.repository import Repository, find_item
from functions.snapshot import layout, oai_name
from functions.snapshot.errors import MissingObject
from functions.snapshot.instant import from_text
from functions.snapshot.manifest import Manifest

_SAMPLE = oai_name.capture_identity(b"http://example.org/", None, None, None)


def identify(configuration: Configuration, manifest: Manifest) -> Identify:
    """Return the Identify response as of a snapshot.

    The sample identifier has the form of the oai-identifier guideline and need not exist. It is
    empty if templates keep identifiers of another form. A configured earliest datestamp is used
    only if it is a lower bound of all datestamps. A mirror answers in the name of its origin.
    """
    earliest = configuration["repository.earliest_datestamp"]
    floor = min(manifest.earliest, from_text(earliest)) if earliest else manifest.earliest
    root = configuration["identify.data_url"]
    if root and not root.endswith("/"):
        root += "/"
    rights = read_rights(configuration).all()
    terms = (find_kind(kind).terms for kind, count in manifest.kinds().items() if count)
    answer = Identify(
        name=configuration["repository.name"],
        emails=tuple(configuration["repository.admin_emails"]),
        earliest=floor,
        namespace=manifest.namespace,
        sample=""
        if (manifest.prefix not in ("", oai_name.to_oai(manifest.namespace, "")))
        else oai_name.to_oai(manifest.namespace, _SAMPLE),
        snapshot=manifest.snapshot,
        effective=manifest.effective,
        records=sum(manifest.kinds().values()),
        parquet=root and root + layout.RECORDS,
        views=root and root + manifest.views_key,
        friends=tuple(configuration["identify.friends"]),
        branding=configuration["identify.branding"],
        policies={
            name: parse_statement(text) for name, text in configuration["identify.eprints"].items()
        },
        rights=(*rights, *(Statement(text=t) for t in dict.fromkeys(terms) if t)),
        descriptions=tuple(text.strip() for text in configuration["identify.descriptions"]),
    )
    if (origin := manifest.origin) is None:
        return answer
    return replace(
        answer,
        name=origin.name,
        emails=origin.emails or answer.emails,
        sample="",
        snapshot=0,
        descriptions=(*origin.descriptions, *answer.descriptions),
        deleted_record=origin.deleted_record,
    )


class Provider:
    """Answers the six verbs from one repository."""

    def __init__(
        self,
        repository: Repository,
        configuration: Configuration,
        formats: Formats,
        present: AsOf,
        digest: Callable[[str], str | None] = lambda prefix: None,
        fields: ColumnsOf = lambda prefix, kinds: None,
    ):
        """`digest` returns the digest of a format's templates, by prefix."""
        self._repository = repository
        self._drift = FormatDrift(digest)
        self._base = str(configuration["repository.base_url"])
        self._formats = formats
        self._present = present
        named_sets = bool(configured_sets(configuration))
        self._fields = fields
        self._lister = ListService(repository, formats, self._drift, fields, named_sets=named_sets)
        self._verbs: dict[str, Callable[[OaiRequest, PointerReading, int], Content]] = {
            IDENTIFY: lambda _, reading, limit: identify(configuration, self._manifest(reading)),
            LIST_FORMATS: self._list_formats,
            LIST_SETS: SetListService(repository, configuration).page,
            GET_RECORD: self._get_record,
        }
        self._limits = {
            LIST_RECORDS: configuration["pages.records"],
            LIST_IDENTIFIERS: configuration["pages.identifiers"],
            LIST_SETS: configuration["pages.sets"],
        }

    def answer(
        self, request: OaiRequest, url: str, render: Render, limit: int | None = None
    ) -> Answer:
        """Answer a request to `url`, by a cached reading if possible, by a new one if it is final.

        `limit` overrides the configured length of a list's page. `render` makes pages of records or
        headers. A snapshot may be removed at once if its successor's pointer came more than
        REMEMBERED late. Then the pointer has moved on, and a new reading answers. Raises StoreError
        if the store fails.
        """
        most = self._limits.get(request.verb, 1) if limit is None else limit
        reading = self._present.reading()
        try:
            content = self._attempt(request, reading, most, render)
            if content.final and reading.cached:
                fresh, cached = self._present.reading(fresh=True), reading
                reading = fresh
                if (fresh.entry, fresh.reached) != (cached.entry, cached.reached):
                    content = self._attempt(request, reading, most, render)
        except MissingObject:
            fresh = self._present.reading(fresh=True)
            if fresh.entry == reading.entry and not reading.cached:
                raise
            reading, content = fresh, self._attempt(request, fresh, most, render)
        base, snapshot = self.base_url(url), reading.entry.snapshot
        return Answer(reading.response_date, base, request.arguments, content, snapshot)

    def find_pin(self, pairs: Sequence[tuple[str, str]]) -> int | None:
        """Return the snapshot of a request's token, if its list would be read from that snapshot.

        None for all other requests. Raises StoreError.
        """
        try:
            request = parse(pairs)
            if request.token is None or request.verb not in (LIST_IDENTIFIERS, LIST_RECORDS):
                return None
            reading = self._present.reading()
            newest = self._repository.manifest(reading.reached)
            token = Token.of_store(request.token, request.verb, newest)
        except OAIError:
            return None
        if not is_known(self._repository, token.snapshot, reading):
            return None
        if find_manifest(self._repository, token.snapshot, reading)[1]:
            return None
        self._drift.check(self._repository.manifest(reading.entry.snapshot), token.prefix)
        return token.snapshot

    def refusal(self, failure: OAIError, url: str) -> Answer:
        """Answer a request that could not be parsed: without attributes (section 3.2)."""
        if failure.code not in UNREADABLE:
            raise ValueError(f"{failure.code} is not an error of an unreadable request")
        reading = self._present.reading()
        base, snapshot = self.base_url(url), reading.entry.snapshot
        return Answer(reading.response_date, base, (), ErrorList(failure.faults), snapshot)

    def base_url(self, url: str) -> str:
        """Return the base URL: the configured one, or that of the request (section 3.1.1.1)."""
        return self._base or url

    def _attempt(
        self, request: OaiRequest, reading: PointerReading, limit: int, render: Render
    ) -> Content:
        try:
            if request.verb in (LIST_IDENTIFIERS, LIST_RECORDS):
                return self._lister.page(request, reading, limit, render)
            return self._verbs[request.verb](request, reading, limit)
        except OAIError as failure:
            return ErrorList(failure.faults)

    def _manifest(self, reading: PointerReading) -> Manifest:
        return self._repository.manifest(reading.entry.snapshot)

    def _list_formats(self, request: OaiRequest, reading: PointerReading, limit: int) -> FormatList:
        """Section 4.4; a deleted item keeps the formats of its kind."""
        manifest = self._manifest(reading)
        if request.identifier is None:
            return FormatList(self._formats.present(manifest).rows)
        record = find_item(self._repository, manifest, request.identifier, fields=())
        if record is None:
            raise error(NO_ITEM, f"There is no item {show(request.identifier)}.")
        formats = self._formats.of_snapshot(manifest).of_kind(record.kind)
        if record.kind in IN_FORMATS and not record.deleted:
            full = self._repository.record(manifest, record.identifier, fields=(DOCUMENT,))
            formats = tuple(f for f in formats if full and select_available([full], f))
        if not formats:
            raise error(NO_FORMATS, f"Items such as {show(request.identifier)} have no format.")
        return FormatList(formats)

    def _get_record(self, request: OaiRequest, reading: PointerReading, limit: int) -> OneRecord:
        """Section 4.1; an unknown item and an unknown format are reported together."""
        manifest = self._manifest(reading)
        name, prefix = request.identifier or "", request.prefix or ""
        kinds = manifest.kinds()
        record = find_item(self._repository, manifest, name, fields=self._fields(prefix, kinds))
        row = self._formats.present(manifest).get(prefix)
        faults = []
        if record is None:
            faults.append(OaiFault(NO_ITEM, f"There is no item {show(name)}."))
        if row is None or (record is not None and record.kind not in row.crosswalks):
            faults.append(OaiFault(NO_FORMAT, f"This item has no format {show(prefix)}."))
        if record is None or row is None or faults:
            raise OAIError(*faults)
        self._drift.check(manifest, row.prefix)
        return OneRecord(record, row, manifest.since(row.prefix))
