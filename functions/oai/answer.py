"""Answers: what a document of OAI-PMH 2.0 says (sections 3.2 and 4), before it becomes XML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from functions.oai.errors import OaiFault
from functions.oai.format import Format
from functions.oai.repository import PublishedRecord
from functions.oai.rights import Statement


@dataclass(frozen=True, slots=True)
class Resumption:
    """The element `<resumptionToken>`; its text is empty on a list's last page (section 3.5)."""

    text: str
    size: int
    cursor: int


@dataclass(frozen=True, slots=True)
class ErrorList:
    """One or several `<error>` elements (section 3.6)."""

    faults: tuple[OaiFault, ...]
    verb: ClassVar[str] = "error"

    @property
    def final(self) -> bool:
        """An error ends what was asked: it must not be told by an old reading of the pointer."""
        return True


@dataclass(frozen=True, slots=True)
class Identify:
    """What the repository says of itself (section 4.2 and the guidelines).

    `records` counts what the snapshot lists, tombstones included. `parquet` and `views` are where
    the public can read the snapshot itself, empty for nowhere. `branding` and `policies` have the
    keys of the configuration; `rights` are all that any record has; `descriptions` are XML. Without
    a `sample` identifiers are not all of the form of the oai-identifier guideline.
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
    version: str
    friends: tuple[str, ...]
    branding: Mapping[str, Any]
    policies: Mapping[str, Statement]
    rights: tuple[Statement, ...]
    descriptions: tuple[str, ...]
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
    """A set: its specification, its name and what is to be said of it for people, and its numbers.

    `records` are the live ones, `deleted` the other listed ones; `first` and `last` are the
    datestamps between which all lie, None where there is none.
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
    """A page of sets (section 4.6), of `snapshot`; `pinned` as with a RecordList."""

    sets: tuple[NamedSet, ...]
    resumption: Resumption | None
    snapshot: int = 0
    pinned: bool = False
    verb: ClassVar[str] = "ListSets"
    final: ClassVar[bool] = False

    @property
    def count(self) -> int:
        """How many sets the page has."""
        return len(self.sets)


@dataclass(frozen=True, slots=True)
class OneRecord:
    """A single record in a format (section 4.1), with no earlier datestamp than `since`."""

    record: PublishedRecord
    format: Format
    since: datetime | None = None
    verb: ClassVar[str] = "GetRecord"
    final: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class RecordList:
    """A page of records or, where `format` is None, of headers (sections 4.3 and 4.5).

    It was read from `snapshot`. A `pinned` one is what its token gives for as long as that snapshot
    is kept, whatever is published: one that the token names, and in which the list goes on. None of
    its records has an earlier datestamp than `since`. `asked` are the arguments with which a list
    began that a token goes on with. Of headers those count that can be had in the format `within`,
    where that is given. `made` is the XML of the records where it was made already, to find out how
    many fit.
    """

    records: Sequence[PublishedRecord]
    format: Format | None
    resumption: Resumption | None
    snapshot: int = 0
    pinned: bool = False
    since: datetime | None = None
    asked: tuple[tuple[str, str], ...] = ()
    within: Format | None = None
    made: tuple[bytes, ...] | None = None

    @property
    def count(self) -> int:
        """How many records the page has."""
        return len(self.records)

    @property
    def verb(self) -> str:
        """The verb whose answer this is."""
        return "ListIdentifiers" if self.format is None else "ListRecords"

    @property
    def final(self) -> bool:
        """Whether the page ends its list."""
        return self.resumption is None or not self.resumption.text


Content = ErrorList | Identify | FormatList | SetList | OneRecord | RecordList


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole document: when it was true, what was asked of which base URL, and the content.

    `in_effect` is the snapshot that was in effect then.
    """

    response_date: datetime
    base_url: str
    arguments: tuple[tuple[str, str], ...]
    content: Content
    in_effect: int = 0

    @property
    def snapshot(self) -> int:
        """The snapshot from which the content was read."""
        own = self.content.snapshot if isinstance(self.content, RecordList | SetList) else 0
        return own or self.in_effect

    @property
    def pinned(self) -> bool:
        """Whether the same request gives this content for as long as `snapshot` is kept."""
        return isinstance(self.content, RecordList | SetList) and self.content.pinned

    def log_fields(self) -> dict[str, Any]:
        """Return what the access log says: snapshot, rows, rows before these, error codes.

        The arguments with which a list of records began come first.
        """
        content, rows, cursor = self.content, 0, 0
        if isinstance(content, RecordList):
            rows = len(content.records)
        elif isinstance(content, SetList):
            rows = len(content.sets)
        elif isinstance(content, FormatList):
            rows = len(content.formats)
        elif isinstance(content, OneRecord):
            rows = 1
        if isinstance(content, RecordList | SetList) and content.resumption is not None:
            cursor = content.resumption.cursor
        codes = {f.code: 0 for f in content.faults} if isinstance(content, ErrorList) else {}
        began = dict(content.asked) if isinstance(content, RecordList) else {}
        return {
            **began,
            "snapshot": self.snapshot,
            "rows": rows,
            "cursor": cursor,
            "errors": [*codes],
        }
