"""Records that were rendered here, as the harvester would read them from a page. Pure.

Most are read by a plain search, which takes a fraction of the time of a parser. It is used only
where it finds the same: where nothing but a record looks like one, and no element of Dublin Core
has attributes or is within another. A test compares both for all kinds and formats.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import unescape

from builder.harvest import page
from builder.harvest.page import PageEntry
from builder.harvest.version import DC
from functions.oai.repository import PublishedRecord
from functions.snapshot import instant

_ELEMENT = re.compile(r"<dc:([a-z]+)>([^<]*)</dc:\1>")
_NAMESPACE = b"http://purl.org/dc/elements/1.1/"
_STRANGE = (b"\r", b":record", b"<about>", b"<!")
_NAMES = frozenset(DC)


def entries(
    head: bytes,
    body: bytes,
    tail: bytes,
    records: Sequence[PublishedRecord],
    since: datetime | None,
) -> Iterator[PageEntry]:
    """Yield the records of a page: `body` is their XML, `head` and `tail` what is around it.

    `records` are those that were to be rendered, dated `since` at the earliest. Raises Broken.
    """
    if not _is_plain(body, len(records)):
        yield from page.read(head + body + tail).entries
        return
    around = page.scope(head)
    has_dc = _NAMESPACE in body
    stamps: dict[datetime, str] = {}
    for record, (start, end) in zip(records, page.places(body, len(records)), strict=True):
        text = page.needing(body[start:end], around)
        stamp = stamps.get(record.datestamp)
        if stamp is None:
            stamp = instant.to_text(max(record.datestamp, since or record.datestamp))
            stamps[record.datestamp] = stamp
        dc = read_dc(text) if has_dc and not record.deleted else {}
        if dc is None:
            yield page.record(text, start, end)
            continue
        yield PageEntry(
            record.identifier, stamp, record.deleted, tuple(record.sets), dc, text, start, end
        )


def _is_plain(body: bytes, count: int) -> bool:
    counts = {body.count(b"<record>"), body.count(b"<record"), body.count(b"</record")}
    return counts == {count} and not any(one in body for one in _STRANGE)


def read_dc(text: str) -> Mapping[str, tuple[str, ...]] | None:
    """Return the non-empty elements of Dublin Core by name; None if a parser must read them."""
    found = _ELEMENT.findall(text)
    if text.count("<dc:") != len(found):
        return None
    dc: dict[str, tuple[str, ...]] = {}
    for name, value in found:
        if name not in _NAMES:
            continue
        if "&" in value:
            value = unescape(value)
        if value := value.strip():
            dc[name] = (*dc[name], value) if name in dc else (value,)
    return dc
