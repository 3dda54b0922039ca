"""Rows of records that were rendered here, as the harvester would read them from pages. Pure.

Most are read by columns, which takes a fraction of the time of a parser. It is used only where it
finds the same: where nothing but a record looks like one, and no element of Dublin Core has
attributes or is within another. A test compares both.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from builder.harvest import page
from builder.harvest.data_files.record_columns import RecordColumns
from builder.harvest.page import PageEntry
from builder.harvest.version import DC
from builder.parquet.piece_columns import PieceColumns
from builder.parquet.pieces import (
    FixedText,
    NoColumnsError,
    Piece,
    fixed_text,
    split_template,
)
from builder.parquet.stored_columns import Arrays, arrays_of
from builder.parquet.texts import TextColumn, read_elements, texts_of
from functions.oai.format import Format
from functions.oai.render.render import Renderer
from functions.oai.repository import PublishedRecord
from functions.oai.repository_duckdb.record_rows import Page
from functions.snapshot import instant

_BEGIN, _END, _TAGS = b"<record>", b"</record>\n", b"record>"
_NAMESPACE = b"http://purl.org/dc/elements/1.1/"
_DC = (
    b'<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
    b'xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
_METADATA, _RIGHTS = b"<metadata>\n" + _DC, b"<rightsDefinition>\n" + _DC
_STRANGE = (b"\r", b"<!", b"<?")
_REFERENCE = re.compile(rb"&(?!amp;|lt;|gt;|#34;|#39;)")
_CAPTURE, _RAW = "capture", "harvested"
"""Items whose XML others wrote."""


def render(pieces: Sequence[Piece], head: bytes, columns: Arrays) -> RecordColumns:
    """Render captures by columns, as `read` reads them from pages. Raises NoColumnsError.

    `columns` are those that the pieces need, and those of a page, with datestamps as text.
    """
    around = [(use.decode(), text) for _, use, text in page.scope(head)]
    texts, dc = PieceColumns(columns, DC).render(pieces, _BEGIN[:-1].decode(), around)
    return RecordColumns(
        TextColumn(columns["identifier"]),
        columns["datestamp"],
        columns["deleted"],
        columns["sets"],
        dc,
        TextColumn(texts),
    )


def page_arrays(records: Sequence[PublishedRecord], since: datetime | None) -> Arrays:
    """Return captures of a page as columns for `render`. Raises NoColumnsError for other items."""
    if not isinstance(records, Page) or {*records.column("kind")} != {_CAPTURE}:
        raise NoColumnsError
    columns = {name: records.column(name) for name in records.names}
    try:
        return arrays_of({**columns, "datestamp": _stamps(records, since)})
    except ValueError as error:  # characters that are none
        raise NoColumnsError from error


def split(renderer: Renderer, row: Format, kind: str, base_url: str) -> Sequence[Piece] | None:
    """Return what is within a record, in pieces for `render`; None if it has to be parsed."""
    if kind != _CAPTURE:
        return None
    tree = renderer.tree(row, kind, base_url)
    if tree is None:
        return None
    prefix = "dc" if row.prefix == "oai_dc" else ""
    try:
        first, *pieces, last = split_template(
            *tree, prefix, has_copies=bool(renderer.copies.templates)
        )
    except (NoColumnsError, ValueError):
        return None
    begin, end = _BEGIN.decode(), _END.decode()
    if not (isinstance(first, FixedText) and isinstance(last, FixedText)):
        return None
    text = fixed_text((first, *pieces, last))
    counts = [(part.decode() in text) for part in (*_STRANGE, b"<about>")]
    dc = text.count(_NAMESPACE.decode()) - text.count(_METADATA.decode())
    is_whole = first.text.startswith(begin) and last.text.endswith(end)
    if any(counts) or dc or text.count(_TAGS.decode()) != 2 or not is_whole:
        return None
    if _REFERENCE.search(text.encode()):
        return None
    return (
        FixedText(first.text.removeprefix(begin)),
        *pieces,
        FixedText(last.text.removesuffix("\n")),
    )


def read(
    head: bytes,
    body: bytes,
    tail: bytes,
    records: Sequence[PublishedRecord],
    since: datetime | None,
) -> RecordColumns:
    """Return the records of a page: `body` is their XML, `head` and `tail` what is around it.

    `records` are those that were to be rendered, dated `since` at the earliest. Raises Broken.
    """
    if isinstance(records, Page) and _is_plain(body, records):
        texts = _add_namespaces(body, page.scope(head))
        dc = read_dc(body, texts) if texts is not None else None
        if texts is not None and dc is not None and len(texts) == len(records):
            return RecordColumns(
                [name.encode() for name in records.column("identifier")],
                _stamps(records, since),
                records.column("deleted"),
                records.column("sets"),
                dc,
                texts,
            )
    return _columns(page.read(head + body + tail).entries)


def _stamps(records: Page, since: datetime | None) -> Sequence[str]:
    dates = records.column("datestamp")
    texts = {date: instant.to_text(max(date, since or date)) for date in {*dates}}
    return [texts[date] for date in dates]


def _columns(entries: Sequence[PageEntry]) -> RecordColumns:
    return RecordColumns(
        [one.identifier.encode() for one in entries],
        [one.datestamp for one in entries],
        [one.deleted for one in entries],
        [one.sets for one in entries],
        {name: [one.dc.get(name) for one in entries] for name in DC},
        [one.text.encode() for one in entries],
    )


def _is_plain(body: bytes, records: Page) -> bool:
    """Return whether the records can be told apart by a plain search."""
    strange = any(one in body for one in _STRANGE) or _REFERENCE.search(body)
    return (
        body.count(_TAGS) == 2 * len(records) and not strange and _RAW not in records.column("kind")
    )


def _add_namespaces(body: bytes, around: page.Scope) -> list[bytes] | None:
    """Return the records, each with the namespaces that it needs, as page.needing adds them.

    None if something is between them.
    """
    made = []
    heads: dict[tuple[bool, ...], bytes] = {}
    for rest in body.split(_BEGIN)[1:]:
        if not rest.endswith(_END):
            return None
        used = tuple([use in rest for _, use, _ in around])
        if used not in heads:
            added = "".join(text for one, (_, _, text) in zip(used, around, strict=True) if one)
            heads[used] = b"%s%s>" % (_BEGIN[:-1], added.encode())
        made.append(heads[used] + rest[:-1])
    return made


def read_dc(body: bytes, texts: Sequence[bytes]) -> Mapping[str, Any] | None:
    """Return arrays of the non-empty elements of Dublin Core; None if a parser must read them."""
    if _NAMESPACE not in body:
        return {}
    abouts = b"<about>" in body
    expected = body.count(_METADATA) + (body.count(_RIGHTS) if abouts else 0)
    if body.count(_NAMESPACE) != expected:
        return None
    end = "</metadata>" if abouts else None
    return read_elements(texts_of(texts), "dc", DC, end)
