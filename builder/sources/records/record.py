"""A record of a file of metadata, as the form of its file gives it, and the faults of such a file.

A record that is known from an earlier reading is not parsed again: its digest stands for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree
from xxhash import xxh3_128_digest

from functions.snapshot.errors import SheafError

Columns = Mapping[str, tuple[str, ...]]
"""A row of CSV, JSON, Parquet or SQL: the texts of each column; nested JSON has dotted names."""


class RecordsError(SheafError):
    """A file of records cannot be read to its end: what it lacks is not deleted."""


class MarcField(NamedTuple):
    """A field of MARC. A control field has `data`; others have indicators and subfields.

    `subfields` are codes and texts, in order.
    """

    tag: str
    indicators: str = ""
    data: str = ""
    subfields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MarcRecord:
    """A record of MARC: a leader of 24 characters, and the fields in the order of the file."""

    leader: str
    fields: tuple[MarcField, ...]


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record. `form` is "marc", "columns", or the name of a form of XML.

    `place` says where it is in its file. `xml` is what is served as it is: the bytes of the file,
    decoded, with the namespaces of outer elements; MARCXML of other forms of MARC; "" for columns.
    `identifier`, `prefix` and `sets` are those that a file of OAI-PMH gives, and `deleted` is what
    the record says of itself. `digest` is that of the record's bytes in the file, with its form.
    """

    place: str
    form: str
    content: MarcRecord | etree._Element | Columns
    xml: str
    identifier: str | None = None
    prefix: str | None = None
    sets: tuple[str, ...] = ()
    deleted: bool = False
    digest: bytes = b""


class KnownRecord(NamedTuple):
    """A record whose digest the caller knows: it was not parsed."""

    digest: bytes


@dataclass(frozen=True, slots=True)
class RecordFault:
    """What is wrong with a record, or with a field of it. The records beside it are read."""

    place: str
    code: str
    field: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the configuration declares of a file; None is guessed. `element` is a local name of XML.

    `is_known` is asked with the digest of each record: if it is true, a KnownRecord is yielded.
    `expect` may be told several digests before.
    """

    element: str | None = None
    encoding: str | None = None
    separator: str | None = None
    is_known: Callable[[bytes], bool] = field(default=lambda digest: False)
    expect: Callable[[Sequence[bytes]], None] = field(default=lambda digests: None)


RecordItem = SourceRecord | KnownRecord | RecordFault


def hash_record(form: str, data: bytes) -> bytes:
    """Return the 16 bytes by which a record of that form with these bytes is known."""
    return xxh3_128_digest(form.encode() + b"\0" + data)
