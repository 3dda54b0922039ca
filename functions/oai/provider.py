"""The data provider: a request in, an answer out; neither XML nor HTTP (OAI-PMH 2.0, section 4)."""

from collections.abc import Callable, Sequence

from functions.oai import token as tokens
from functions.oai.answer import (
    Answer,
    Content,
    Failure,
    FormatList,
    Identify,
    NamedSet,
    OneRecord,
    Resumption,
    SetList,
)
from functions.oai.errors import (
    NO_FORMAT,
    NO_FORMATS,
    NO_ITEM,
    NO_SETS,
    UNREADABLE,
    Fault,
    OAIError,
    error,
    shown,
)
from functions.oai.format import Formats
from functions.oai.listing import Lister, kept_or_current, known
from functions.oai.present import Present, Reading
from functions.oai.repository import Repository, SetRow
from functions.oai.request import (
    GET_RECORD,
    IDENTIFY,
    LIST_FORMATS,
    LIST_IDENTIFIERS,
    LIST_RECORDS,
    LIST_SETS,
    Request,
    parse,
)
from functions.oai.token import Token
from functions.snapshot import identifier, setspec
from functions.snapshot.configuration import Configuration
from functions.snapshot.errors import MissingObject
from functions.snapshot.manifest import Manifest

_SAMPLE = identifier.capture_identity(b"http://example.org/", None, None, None)


class Provider:
    """Answers the six verbs from one repository."""

    def __init__(
        self,
        repository: Repository,
        configuration: Configuration,
        formats: Formats,
        present: Present,
    ):
        self._repository = repository
        self._configuration = configuration
        self._formats = formats
        self._present = present
        self._lister = Lister(repository, formats)
        self._verbs: dict[str, Callable[[Request, Reading, int], Content]] = {
            IDENTIFY: self._identify,
            LIST_FORMATS: self._list_formats,
            LIST_SETS: self._list_sets,
            GET_RECORD: self._get_record,
            LIST_IDENTIFIERS: self._lister.page,
            LIST_RECORDS: self._lister.page,
        }
        self._limits = {
            LIST_RECORDS: configuration["pages.records"],
            LIST_IDENTIFIERS: configuration["pages.identifiers"],
            LIST_SETS: configuration["pages.sets"],
        }

    def answer(
        self, pairs: Sequence[tuple[str, str]], url: str, limit: int | None = None
    ) -> Answer:
        """Answer decoded pairs of key and value that came to `url`.

        `limit` shortens the page of a list. Raises StoreError where the store gives no answer.
        """
        try:
            request = parse(pairs)
        except OAIError as failure:
            return self.refusal(failure, url)
        most = self._limits.get(request.verb, 1)
        reading, content = self._told(request, most if limit is None else min(limit, most))
        return Answer(reading.response_date, self.base_url(url), request.arguments, content)

    def refusal(self, failure: OAIError, url: str) -> Answer:
        """Answer what could not be read as a request: no attributes at all (section 3.2)."""
        if failure.code not in UNREADABLE:
            raise ValueError(f"{failure.code} is no error of a request that cannot be read")
        reading = self._present.reading()
        return Answer(reading.response_date, self.base_url(url), (), Failure(failure.faults))

    def base_url(self, url: str) -> str:
        """Return the base URL: the configured one, or that of the request (section 3.1.1.1)."""
        return str(self._configuration["repository.base_url"] or url)

    def _told(self, request: Request, limit: int) -> tuple[Reading, Content]:
        """Answer by a reading; by a new one where a kept one would have the last word."""
        reading = self._present.reading()
        try:
            content = self._attempt(request, reading, limit)
            if not (content.final and reading.kept):
                return reading, content
        except MissingObject:
            if not reading.kept:
                raise
            return self._anew(request, limit)
        fresh = self._present.reading(fresh=True)
        if (fresh.entry, fresh.reached) == (reading.entry, reading.reached):
            return fresh, content
        return fresh, self._attempt(request, fresh, limit)

    def _anew(self, request: Request, limit: int) -> tuple[Reading, Content]:
        fresh = self._present.reading(fresh=True)
        return fresh, self._attempt(request, fresh, limit)

    def _attempt(self, request: Request, reading: Reading, limit: int) -> Content:
        try:
            return self._verbs[request.verb](request, reading, limit)
        except OAIError as failure:
            return Failure(failure.faults)

    def _manifest(self, reading: Reading) -> Manifest:
        return self._repository.manifest(reading.entry.snapshot)

    def _identify(self, request: Request, reading: Reading, limit: int) -> Identify:
        """Section 4.2; the sample is one of the right form, for none need be there."""
        manifest = self._manifest(reading)
        return Identify(
            name=self._configuration["repository.name"],
            emails=tuple(self._configuration["repository.admin_emails"]),
            earliest=manifest.earliest,
            namespace=manifest.namespace,
            sample=identifier.to_oai(manifest.namespace, _SAMPLE),
        )

    def _list_formats(self, request: Request, reading: Reading, limit: int) -> FormatList:
        """Section 4.4; a deleted item keeps the formats of its kind."""
        manifest = self._manifest(reading)
        if request.identifier is None:
            return FormatList(self._formats.offered(manifest.kinds()))
        record = self._repository.record(manifest, request.identifier)
        if record is None:
            raise error(NO_ITEM, f"There is no item {shown(request.identifier)}.")
        formats = self._formats.of_kind(record.kind)
        if not formats:
            raise error(NO_FORMATS, f"Items such as {shown(request.identifier)} have no format.")
        return FormatList(formats)

    def _get_record(self, request: Request, reading: Reading, limit: int) -> OneRecord:
        """Section 4.1; an unknown item and an unknown format are told together."""
        manifest = self._manifest(reading)
        name, prefix = request.identifier or "", request.prefix or ""
        record = self._repository.record(manifest, name)
        row = self._formats.get(prefix)
        if row is not None and row not in self._formats.offered(manifest.kinds()):
            row = None
        faults = []
        if record is None:
            faults.append(Fault(NO_ITEM, f"There is no item {shown(name)}."))
        if row is None or (record is not None and record.kind not in row.crosswalks):
            faults.append(Fault(NO_FORMAT, f"There is no such record as {shown(prefix)}."))
        if record is None or row is None or faults:
            raise OAIError(*faults)
        return OneRecord(record, row, manifest.since(row.prefix))

    def _list_sets(self, request: Request, reading: Reading, limit: int) -> SetList:
        """Section 4.6; the pages of one list come from one snapshot for as long as it is kept."""
        if request.token is None:
            snapshot, after, cursor = reading.entry.snapshot, "", 0
        else:
            token = Token.from_text(request.token, request.verb)
            if not known(self._repository, token.snapshot, reading):
                raise tokens.refusal()
            snapshot, after, cursor = token.snapshot, token.after, token.cursor
        manifest, _ = kept_or_current(self._repository, snapshot, reading)
        try:
            rows = self._sets(manifest, after, limit)
        except MissingObject:
            # The snapshot was retired after its manifest was read.
            if snapshot >= reading.entry.snapshot:
                raise
            manifest = self._manifest(reading)
            rows = self._sets(manifest, after, limit)
        if not rows:
            raise tokens.refusal()
        more, rows = len(rows) > limit, rows[:limit]
        reached = cursor + len(rows)
        size = max(manifest.sets, reached + 1) if more else reached
        text = ""
        if more:
            text = Token(
                verb=request.verb,
                snapshot=manifest.snapshot,
                after=rows[-1].spec,
                cursor=reached,
                size=size,
            ).to_text()
        names = self._configuration["sets.names"]
        return SetList(
            tuple(NamedSet(row.spec, setspec.name(row.spec, names)) for row in rows),
            Resumption(text, size, cursor) if more or cursor else None,
        )

    def _sets(self, manifest: Manifest, after: str, limit: int) -> tuple[SetRow, ...]:
        if not manifest.sets:
            raise error(NO_SETS, "This repository has no sets.")
        return self._repository.sets(manifest, after, limit + 1)
