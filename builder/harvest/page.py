"""Pages: what one answer of OAI-PMH 2.0 says, its records as they are written and as they read.

The envelope is known by its local names, since some repositories leave its namespace out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from builder.harvest.errors import Broken
from builder.harvest.row import DC

_DC_NAMES = {f"http://purl.org/dc/elements/1.1/ {name}": name for name in DC}
_ROWS = {
    # verb: the depth of what is read of its rows; a record's header is a level deeper
    "Identify": 3,
    "ListSets": 4,
    "ListMetadataFormats": 4,
    "ListIdentifiers": 4,
    "ListRecords": 5,
    "GetRecord": 5,
}
_HEADER = frozenset({"identifier", "datestamp", "setSpec"})
_TAG = re.compile(rb"<[^\s/>]+")
_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class Entry:
    """A record, or the header of one where identifiers are listed.

    `text` is its element with the namespaces that it needs; `start` and `end` are where it lay in
    the answer's bytes.
    """

    identifier: str
    datestamp: str
    deleted: bool
    sets: tuple[str, ...]
    dc: Mapping[str, tuple[str, ...]]
    text: str
    start: int
    end: int
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """An answer. `token` is None where there is no such element, and "" where it is empty.

    `rows` are the fields of sets and formats, and of Identify in one row. `lost` are identifiers
    with the words for it of records that could not be read; `torn` says that the list breaks off.
    """

    date: str | None = None
    errors: tuple[tuple[str, str], ...] = ()
    entries: tuple[Entry, ...] = ()
    rows: tuple[Mapping[str, str], ...] = ()
    token: str | None = None
    size: int | None = None
    lost: tuple[tuple[str, str], ...] = ()
    torn: bool = False


def read(data: bytes) -> Page:
    """Read an answer in UTF-8, whatever it declares. Raises Broken."""
    reader = _Reader()
    reader.feed(data, final=True)
    return Page(
        date=reader.date,
        errors=tuple(reader.errors),
        entries=tuple(reader.entries),
        rows=tuple(reader.rows),
        token=reader.token,
        size=reader.size,
    )


def records(pieces: Iterator[bytes]) -> Iterator[Entry]:
    """Yield the records of a document of theirs, `<records>`, as it comes. Raises Broken."""
    reader = _Reader(ahead=1)
    for piece in pieces:
        reader.feed(piece)
        yield from reader.entries
        reader.entries.clear()
    reader.feed(b"", final=True)


@dataclass(slots=True)
class _Reader:
    """Reads an answer; `ahead` is how many levels of the envelope are not there."""

    ahead: int = 0
    date: str | None = None
    errors: list[tuple[str, str]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    rows: list[dict[str, str]] = field(default_factory=list)
    token: str | None = None
    size: int | None = None
    _parser: expat.XMLParserType = field(init=False)
    _held: bytes = field(init=False, default=b"")
    _base: int = field(init=False, default=0)
    _start_at: int | None = field(init=False, default=None)
    _depth: int = field(init=False, default=0)
    _verb: str = field(init=False, default="")
    _part: str = field(init=False, default="")
    _field: str = field(init=False, default="")
    _at: int = field(init=False, default=-1)
    _text: list[str] = field(init=False, default_factory=list)
    _code: str = field(init=False, default="")
    _deleted: bool = field(init=False, default=False)
    _values: dict[str, list[str]] = field(init=False, default_factory=dict)
    _dc: dict[str, list[str]] = field(init=False, default_factory=dict)
    _scope: dict[str | None, str] = field(init=False, default_factory=dict)
    _declared: dict[str | None, str] = field(init=False, default_factory=dict)
    _own: dict[str | None, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        parser = self._parser = expat.ParserCreate("UTF-8", " ")
        parser.buffer_text = True
        parser.buffer_size = _STEP
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartNamespaceDeclHandler = self._declare
        parser.StartDoctypeDeclHandler = self._doctype
        if self.ahead:
            self._depth, self._verb = self.ahead, "ListRecords"

    def feed(self, data: bytes, final: bool = False) -> None:
        """Take some more of it."""
        self._held += data
        try:
            self._parser.Parse(data, final)
        except expat.ExpatError as error:
            words = expat.errors.messages[error.code]
            what = f"no XML: {words} in line {error.lineno}"
            raise Broken(what, unbound=words == "unbound prefix") from error
        except UnicodeDecodeError as error:  # of which expat takes some
            raise Broken(f"no XML: not UTF-8: {error.reason}") from error
        whole = self._base + len(self._held)
        kept = whole if self._start_at is None else self._start_at
        self._held, self._base = self._held[kept - self._base :], kept

    def _doctype(self, *_: object) -> None:
        raise Broken("a document type is declared, which no answer of OAI-PMH has")

    def _declare(self, prefix: str | None, uri: str) -> None:
        self._declared[prefix] = uri or ""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        depth = self._depth = self._depth + 1
        if depth > 5:
            if depth == 6 and self._part == "metadata" and name in _DC_NAMES:
                self._listen(_DC_NAMES[name])
            return
        local = name.rpartition(" ")[2]
        if depth == 5:
            if self._part == "header" and local in _HEADER:
                self._listen(local)
        elif depth == 4:
            self._start_within(local, attributes)
        elif depth == 3:
            self._start_row(local, attributes)
        else:
            self._start_envelope(depth, local, attributes)

    def _start_envelope(self, depth: int, local: str, attributes: dict[str, str]) -> None:
        self._scope.update(self._declared)
        self._declared.clear()
        if depth == 2:
            self._verb = local
            self._code = attributes.get("code", "")
            if local in ("responseDate", "error"):
                self._listen(local)
        elif not self.ahead and local != "OAI-PMH":
            raise Broken(f"no OAI-PMH, but a document <{local[:40]}>")

    def _start_row(self, local: str, attributes: dict[str, str]) -> None:
        if self._verb == "Identify":
            self._listen(local)
        elif local == "resumptionToken":
            size = attributes.get("completeListSize", "").strip()
            self.size = int(size) if size.isascii() and size.isdigit() else None
            self._listen(local)
        elif self._verb in _ROWS:
            self._start_at = self._parser.CurrentByteIndex
            self._own = dict(self._declared)
            self._parser.StartNamespaceDeclHandler = None
            self._deleted = attributes.get("status", "").strip().lower() == "deleted"
        self._declared.clear()

    def _start_within(self, local: str, attributes: dict[str, str]) -> None:
        """Begin what lies in a row: a part of a record, or a field of anything else."""
        if self._verb == "Identify":
            return
        if _ROWS.get(self._verb) == 4:
            self._listen(local)
            return
        self._part = local
        if local == "header":
            self._deleted = attributes.get("status", "").strip().lower() == "deleted"

    def _listen(self, name: str) -> None:
        self._field, self._at = name, self._depth
        self._text = []
        self._parser.CharacterDataHandler = self._text.append

    def _end(self, name: str) -> None:
        depth = self._depth
        self._depth = depth - 1
        if depth == self._at:
            self._parser.CharacterDataHandler = None
            self._at = -1
            self._take("".join(self._text).strip(), depth)
        elif depth == 4:
            self._part = ""
        elif depth == 3 and self._start_at is not None:
            self._end_row()

    def _take(self, text: str, depth: int) -> None:
        if depth == 6:
            if text:
                self._dc.setdefault(self._field, []).append(text)
        elif depth > 3 or self._verb == "Identify":
            self._values.setdefault(self._field, []).append(text)
            if depth == 3:
                self.rows[:] = [{name: some[0] for name, some in self._values.items()}]
        elif depth == 3:
            self.token = text
        elif self._field == "error":
            self.errors.append((self._code, " ".join(text.split())))
        else:
            self.date = text

    def _end_row(self) -> None:
        values, self._values = self._values, {}
        start, self._start_at = self._start_at or 0, None
        self._parser.StartNamespaceDeclHandler = self._declare
        if self._verb in ("ListSets", "ListMetadataFormats"):
            self.rows.append({name: some[0] for name, some in values.items()})
            return
        dc, self._dc = self._dc, {}
        end = self._held.index(b">", self._parser.CurrentByteIndex - self._base) + 1
        self.entries.append(
            Entry(
                identifier=values.get("identifier", [""])[0],
                datestamp=values.get("datestamp", [""])[0],
                deleted=self._deleted,
                sets=tuple(values.get("setSpec", ())),
                dc={name: tuple(some) for name, some in dc.items()},
                text=self._needing(self._held[start - self._base : end]),
                start=start,
                end=end + self._base,
            )
        )

    def _needing(self, element: bytes) -> str:
        """Return an element with the namespaces of its surroundings that it needs."""
        added = ""
        for prefix, uri in self._scope.items():
            if prefix in self._own or not (prefix is None or f"{prefix}:".encode() in element):
                continue
            name = "xmlns" if prefix is None else f"xmlns:{prefix}"
            added += f' {name}="{_attribute(uri)}"'
        tag = _TAG.match(element)
        at = tag.end() if tag else 0
        return element[:at].decode() + added + element[at:].decode()


def _attribute(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
