"""Answers: what a document of OAI-PMH 2.0 says (sections 3.2 and 4), before it becomes XML."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from functions.oai.errors import Fault
from functions.oai.format import Format
from functions.oai.repository import Record


@dataclass(frozen=True, slots=True)
class Resumption:
    """The element `<resumptionToken>`; its text is empty on a list's last page (section 3.5)."""

    text: str
    size: int
    cursor: int


@dataclass(frozen=True, slots=True)
class Failure:
    """One or several `<error>` elements (section 3.6)."""

    faults: tuple[Fault, ...]
    verb: ClassVar[str] = "error"

    @property
    def final(self) -> bool:
        """An error ends what was asked: it must not be told by an old reading of the pointer."""
        return True


@dataclass(frozen=True, slots=True)
class Identify:
    """What the repository says of itself (section 4.2)."""

    name: str
    emails: tuple[str, ...]
    earliest: datetime
    namespace: str
    sample: str
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
    """A set: its specification and its name for people."""

    spec: str
    name: str


@dataclass(frozen=True, slots=True)
class SetList:
    """A page of sets (section 4.6)."""

    sets: tuple[NamedSet, ...]
    resumption: Resumption | None
    verb: ClassVar[str] = "ListSets"
    final: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class OneRecord:
    """A single record in a format (section 4.1), with no earlier datestamp than `since`."""

    record: Record
    format: Format
    since: datetime | None = None
    verb: ClassVar[str] = "GetRecord"
    final: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class RecordList:
    """A page of records or, where `format` is None, of headers (sections 4.3 and 4.5).

    None has an earlier datestamp than `since`.
    """

    records: tuple[Record, ...]
    format: Format | None
    resumption: Resumption | None
    since: datetime | None = None

    @property
    def verb(self) -> str:
        """The verb whose answer this is."""
        return "ListIdentifiers" if self.format is None else "ListRecords"

    @property
    def final(self) -> bool:
        """Whether the page ends its list."""
        return self.resumption is None or not self.resumption.text


Content = Failure | Identify | FormatList | SetList | OneRecord | RecordList


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole document: when it was true, what was asked of which base URL, and the content."""

    response_date: datetime
    base_url: str
    arguments: tuple[tuple[str, str], ...]
    content: Content
