"""Fields of a record as rows for people: label, values, and links of values that are URLs."""

import html
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from functions.kinds import find_kind
from functions.kinds.kind import CitedWork, LinkedName
from functions.oai.render.language import Language
from functions.reading.repository import PublishedRecord
from functions.snapshot import instant

_LONGEST = 2_000
"""Characters of a value that a page shows."""
_MANY = 100
"""Values of a field that a page shows."""
_LIST = 5_000
"""Characters of a list in the card of a work, or of its abstract, with their markup escaped."""
_ROOM = 25_000
"""Characters of all fields with their markup escaped: a page should stay below 150 kB."""
ELSEWHERE = frozenset(
    {"fetch_time", "fields", "files", "gathered", "manifest", "records", "text", "url_bytes"}
)
"""Fields that a page shows in another way, or not at all."""
_NUMBERS, _SIZES = {"captures", "files"}, {"bytes", "content_length", "file_bytes"}
_WRITTEN = {"handle_written": "handle", "type_written": "type"}
"""Fields that say something only if they differ from another."""
_COUNTED = {"different", "most"}
"""Keys of counts by value: a page shows the most frequent ones."""


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A value as text; `link` is where it leads: the value itself, or a page about it."""

    text: str
    link: str | None = None


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field: the name of its column or attribute, its label, its meaning, and its values."""

    name: str
    label: str
    meaning: str
    values: tuple[FieldValue, ...]


def list_fields(
    record: PublishedRecord, text: Language, links: Mapping[str, str]
) -> list[FieldRow]:
    """Return the fields of a live record that have values: of a template its attributes first.

    The others are in the order of the record's schema. `links` are those of columns with one value.
    """
    rows, room = [], _ROOM
    attributes = (
        (name, text.find(key, name.replace("-", " ").capitalize()), meaning, value)
        for key, name, meaning, value in find_kind(record.kind).attributes(record.fields)
    )
    carded = find_kind(record.kind).carded
    for name, label, meaning, value in (*attributes, *_list_columns(record, text)):
        if name in carded:
            continue
        values = tuple(_take(_values(value), room))
        room -= sum(weigh(field_value.text) for field_value in values)
        if values:
            if name in links and len(values) == 1:
                values = (FieldValue(values[0].text, links[name]),)
            rows.append(FieldRow(name, label, meaning, values))
    return rows


def _list_columns(record: PublishedRecord, text: Language) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the columns of a record that a page shows as fields: name, label, meaning, value."""
    for column in find_kind(record.kind).columns:
        value = record.fields.get(column.name)
        if column.name in ELSEWHERE or value == record.fields.get(_WRITTEN.get(column.name, "")):
            continue
        if isinstance(value, bool):
            value = text("value.yes" if value else "value.no")
        elif column.name in _NUMBERS and value is not None:
            value = text.write_number(value)
        elif column.name in _SIZES and value is not None:
            value = f"{text.write_number(value)} B" + (
                f" ({text.write_bytes(value)})" if value > 999 else ""
            )
        elif column.name == "tist" and value is not None:
            value = instant.to_text(datetime.fromtimestamp(value, UTC))
        label = text.find(f"field.{column.name}", column.name.replace("_", " "))
        yield column.name, label, column.meaning, value


def _take(values: Iterator[FieldValue], room: int) -> Iterator[FieldValue]:
    """Yield values as long as their characters have room."""
    for field_value in values:
        room -= weigh(field_value.text)
        if room < 0:
            yield FieldValue("…")
            return
        yield field_value


def weigh(text: str) -> int:
    """Return the length of a text with its markup escaped."""
    return len(html.escape(text))


def shorten(text: str, most: int = 300) -> str:
    """Return a text of a list, cut to a length."""
    return text if len(text) <= most else f"{text[:most]}…"


def read_title(record: PublishedRecord) -> str:
    """Return the title of a live record; without one, what identifies it best."""
    return _cut(find_kind(record.kind).title(record.fields) or record.identifier)


def read_date(record: PublishedRecord) -> str:
    """Return the date that people look for: of the capture, or of the publication."""
    return str(find_kind(record.kind).date(record.fields) or "")


def is_web(text: str) -> bool:
    """Return whether a text is a URL that a page may link to."""
    return text.startswith(("http://", "https://"))


def cut_work(work: CitedWork) -> CitedWork:
    """Return a work of which a page shows each part, with lists that end where it ends."""

    def cut(names: Iterable[LinkedName]) -> tuple[LinkedName, ...]:
        texts = [LinkedName(shorten(name.name), name.link) for name in names]
        ends = accumulate(2 * weigh(name.name) + len(name.link) for name in texts)
        return tuple(name for name, end in zip(texts, ends, strict=True) if end < _LIST)

    return replace(
        work,
        creators=cut(work.creators),
        contributors=cut(work.contributors),
        abstract=shorten(work.abstract, _LIST),
        subjects=tuple(name.name for name in cut(map(LinkedName, work.subjects))),
        licences=cut(work.licences),
        identifiers=cut(work.identifiers),
    )


def _values(value: Any) -> Iterator[FieldValue]:
    """Yield the values of a field; nested ones become lines of name and value."""
    if value is None or value in ("", [], {}):
        return
    if isinstance(value, Mapping):
        if value.keys() == _COUNTED:
            for count in value["most"][:_MANY]:
                yield FieldValue(_cut(f"{count.get('value')} ({count.get('captures')})"))
            return
        for name, inner in list(value.items())[:_MANY]:
            for line in _values(inner):
                yield FieldValue(_cut(f"{name}: {line.text}"), line.link)
    elif isinstance(value, list | tuple):
        for inner in value[:_MANY]:
            if isinstance(inner, Mapping):
                yield FieldValue(_cut(_describe_part(inner)))
            else:
                yield from _values(inner)
    elif value is False:  # that a creator is no organisation says nothing
        return
    elif isinstance(value, bytes):
        yield FieldValue(_cut(value.decode("utf-8", "replace")))
    else:
        text = str(value)
        yield FieldValue(_cut(text), text if is_web(text) else None)


def _describe_part(part: Mapping[str, Any]) -> str:
    """Return a part of a field, such as an author, in a line: its name, then the rest."""
    texts = {name: ", ".join(v.text for v in _values(inner)) for name, inner in part.items()}
    first = texts.pop("name", "") or texts.pop("value", "")
    rest = "; ".join(f"{name}: {text}" for name, text in texts.items() if text)
    return f"{first} ({rest})" if first and rest else first or rest


def _cut(text: str) -> str:
    return shorten(text, _LONGEST)
