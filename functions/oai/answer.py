"""Content of OAI-PMH 2.0 responses before it becomes XML (sections 3.2 and 4).

Rights statements and policies are each a text or the URL of a text (guidelines for rights
expressions and for the eprints description).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from functions.config import check
from functions.config.configuration import Configuration
from functions.oai.format import Format
from functions.oai.request import OaiFault
from functions.reading.repository import PublishedRecord
from functions.snapshot import oai_name


@dataclass(frozen=True, slots=True)
class Statement:
    """Either a URL or a text; the other is empty."""

    url: str = ""
    text: str = ""


def parse_statement(value: str) -> Statement:
    """Return a configuration value as a statement."""
    return Statement(url=value) if check.is_url(value) else Statement(text=value)


@dataclass(frozen=True, slots=True)
class Rights:
    """Rights statements for all metadata, and for records within a set."""

    general: Statement | None
    of_sets: Mapping[str, Statement]

    def of(self, sets: tuple[str, ...]) -> tuple[Statement, ...]:
        """Return the statements for a record in `sets`: those of its most specific sets.

        If several sets do not contain each other, the statements of all of them apply. The general
        statement applies if no set of the record has one.
        """
        specs = {
            above for spec in sets for above in oai_name.set_lineage(spec) if above in self.of_sets
        }
        statements = dict.fromkeys(
            self.of_sets[spec] for spec in oai_name.most_specific_sets(specs)
        )
        return tuple(statements) or ((self.general,) if self.general else ())

    def all(self) -> tuple[Statement, ...]:
        """Return each statement once."""
        general = (self.general,) if self.general else ()
        return tuple(dict.fromkeys((*general, *self.of_sets.values())))


def read_rights(configuration: Configuration) -> Rights:
    """Return the rights of the configuration."""
    general = configuration["rights.statement"]
    return Rights(
        parse_statement(general) if general else None,
        {spec: parse_statement(value) for spec, value in configuration["rights.sets"].items()},
    )


@dataclass(frozen=True, slots=True)
class Resumption:
    """The element `<resumptionToken>`; its text is empty on a last page (section 3.5).

    A size of 0 stands for an unknown one, and then the cursor is not shown either.
    """

    text: str
    size: int
    cursor: int


@dataclass(frozen=True, slots=True)
class ErrorList:
    """One or several `<error>` elements (section 3.6)."""

    faults: tuple[OaiFault, ...]
    verb: ClassVar[str] = "error"
    final: ClassVar[bool] = True
    """An error ends a request, so a cached pointer reading must not decide it."""


@dataclass(frozen=True, slots=True)
class Identify:
    """Content of an Identify response (section 4.2 and the guidelines).

    `records` counts the records of the snapshot, tombstones included. `parquet` and `views` are the
    public addresses of the snapshot itself, or empty. `branding` and `policies` have the keys of
    the configuration. `rights` are all statements that apply to any record. `descriptions` are XML.
    `sample` is empty if some identifiers lack the form of the oai-identifier guideline. A mirror,
    which has the descriptions of its origin, has neither that nor a `snapshot`, which is 0.
    """

    name: str
    emails: tuple[str, ...]
    earliest: datetime
    namespace: str
    sample: str
    snapshot: int
    effective: datetime
    records: int
    parquet: str
    views: str
    friends: tuple[str, ...]
    branding: Mapping[str, Any]
    policies: Mapping[str, Statement]
    rights: tuple[Statement, ...]
    descriptions: tuple[str, ...]
    deleted_record: str = "persistent"
    verb: ClassVar[str] = "Identify"
    final: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class FormatList:
    """Metadata formats of the repository or of one item (section 4.4)."""

    formats: tuple[Format, ...]
    verb: ClassVar[str] = "ListMetadataFormats"
    final: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A set: specification, name, descriptions for people, and counts.

    `records` counts live records, `deleted` the other listed ones. `first` and `last` are the
    lowest and highest datestamps, None for a set without records.
    """

    spec: str
    name: str
    descriptions: tuple[str, ...]
    records: int
    deleted: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class SetList:
    """A page of sets of `snapshot` (section 4.6); for `pinned` see RecordList."""

    sets: tuple[NamedSet, ...]
    resumption: Resumption | None
    snapshot: int = 0
    pinned: bool = False
    verb: ClassVar[str] = "ListSets"
    final: ClassVar[bool] = False

    @property
    def count(self) -> int:
        """Number of sets on the page."""
        return len(self.sets)


@dataclass(frozen=True, slots=True)
class OneRecord:
    """A single record in a format (section 4.1); its datestamp is never earlier than `since`."""

    record: PublishedRecord
    format: Format
    since: datetime | None = None
    verb: ClassVar[str] = "GetRecord"
    final: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class RecordList:
    """A page of records or, if `format` is None, of headers (sections 4.3 and 4.5).

    `snapshot` is the snapshot that the page was read from. If `pinned`, the same token returns the
    same page as long as that snapshot is kept, whatever is published. This holds for pages whose
    token names the snapshot and whose list continues in it. No datestamp is earlier than `since`.
    `arguments` are the original ones of a list that a token continues. If `within` is given, only
    headers of records available in that format count. `body` is what Render made of the records.
    """

    records: Sequence[PublishedRecord]
    format: Format | None
    resumption: Resumption | None
    snapshot: int = 0
    pinned: bool = False
    since: datetime | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    within: Format | None = None
    body: tuple[bytes, ...] | None = None

    @property
    def count(self) -> int:
        """Number of records on the page."""
        return len(self.records)

    @property
    def verb(self) -> str:
        """The verb that this content answers."""
        return "ListIdentifiers" if self.format is None else "ListRecords"

    @property
    def final(self) -> bool:
        """True if this page is the last of its list."""
        return self.resumption is None or not self.resumption.text


Read = Callable[[int | None], Sequence[PublishedRecord]]
"""Returns the next records of a list, given how many are likely to fit; None if that is unknown."""

Render = Callable[[RecordList, Read], tuple[tuple[bytes, ...], int]]
"""Returns the body of a page, and the number of records that fit on it.

It takes the page without its records, and what reads these.
"""

ColumnsOf = Callable[[str, Collection[str]], Collection[str] | None]
"""Returns the columns that a format, by its prefix, needs of records of some kinds; None: all."""

Content = ErrorList | Identify | FormatList | SetList | OneRecord | RecordList


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response: date, base URL, request arguments and content.

    `in_effect` is the snapshot that was in effect at the response date.
    """

    response_date: datetime
    base_url: str
    arguments: tuple[tuple[str, str], ...]
    content: Content
    in_effect: int = 0

    @property
    def snapshot(self) -> int:
        """The snapshot that the content was read from."""
        own = self.content.snapshot if isinstance(self.content, RecordList | SetList) else 0
        return own or self.in_effect

    @property
    def pinned(self) -> bool:
        """True if the same request returns this content as long as `snapshot` is kept."""
        return isinstance(self.content, RecordList | SetList) and self.content.pinned

    def log_fields(self) -> dict[str, Any]:
        """Return the fields of the access log: snapshot, rows, cursor and error codes.

        For a continued list of records, its original arguments come first.
        """
        content = self.content
        rows, cursor = int(isinstance(content, OneRecord)), 0
        if isinstance(content, RecordList | SetList):
            rows = content.count
            cursor = content.resumption.cursor if content.resumption else 0
        elif isinstance(content, FormatList):
            rows = len(content.formats)
        codes = {f.code: 0 for f in content.faults} if isinstance(content, ErrorList) else {}
        return {
            **dict(content.arguments if isinstance(content, RecordList) else ()),
            "snapshot": self.snapshot,
            "rows": rows,
            "cursor": cursor,
            "errors": [*codes],
        }
