"""Answers: what came over the wire made a page, mended where it must be. Pure.

What cannot be mended is taken apart: each record that is whole by itself counts, others are lost.
"""

import re
from dataclasses import replace
from html import unescape

from builder.harvest import repair
from builder.harvest.errors import Broken
from builder.harvest.page import Entry, Page, read

_BEGIN = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?record\b[^>]*>\s*<(?:[A-Za-z_][\w.-]*:)?header\b")
_END = re.compile(rb"</(?:[A-Za-z_][\w.-]*:)?record\s*>")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?OAI-PMH\b[^>]*>")
_NAME = re.compile(rb"<([^\s>]+)")
_TOKEN = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?resumptionToken\b([^>]*?)(?:/>|>(.*?)</)", re.DOTALL)
_SIZE = re.compile(rb"completeListSize\s*=\s*[\"']\s*([0-9]{1,15})\s*[\"']")
_LIST_END = re.compile(rb"</(?:[A-Za-z_][\w.-]*:)?(?:ListRecords|GetRecord|OAI-PMH)\s*>")
_DATE = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?responseDate\s*>\s*([^<]*?)\s*</")
_IDENTIFIER = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?identifier\b[^>]*>\s*(.*?)\s*</", re.DOTALL)
_SHOWN = 200
UNREADABLE = "its element is no XML"


def page(data: bytes, charset: str | None) -> Page:
    """Return the page that an answer is, mended if that is needed. Raises Broken.

    Of a Broken whose answer has records, `taken_apart` makes the most.
    """
    unbound = False
    if not repair.is_wide(data):
        try:
            return read(data)
        except Broken as error:
            unbound = error.unbound
    mended = repair.mended(data, charset, unbound)
    try:
        found = read(mended.data)
    except Broken as error:
        if unbound or not error.unbound:
            raise
        mended = repair.mended(data, charset, unbound=True)
        found = read(mended.data)
    return replace(found, entries=tuple(_told(entry, mended) for entry in found.entries))


def taken_apart(data: bytes, charset: str | None) -> Page | None:
    """Return what can be read of an answer that is no XML also when mended; None for nothing."""
    mended = repair.mended(data, charset)
    found = mended.data
    root = _ROOT.search(found)
    starts = [match.start() for match in _BEGIN.finditer(found)]
    if root is None or not starts:
        return None
    closes = _LIST_END.search(found, starts[-1])
    name = _NAME.match(root[0])
    assert name is not None  # it is how a root is known
    before, after = root[0] + b"<ListRecords>", b"</ListRecords></" + name[1] + b">"
    entries: list[Entry] = []
    lost: list[tuple[str, str]] = []
    for start, limit in zip(starts, [*starts[1:], len(found)], strict=True):
        ends = [match.end() for match in _END.finditer(found, start, limit)]
        fragment = found[start : ends[-1] if ends else limit]
        try:
            (entry,) = read(before + fragment + after).entries
        except (Broken, ValueError):
            if ends or closes:  # else it is the place at which the answer breaks off
                lost.append((_identifier(fragment), UNREADABLE))
        else:
            entries.append(_told(entry._replace(start=start, end=start + len(fragment)), mended))
    token = _TOKEN.search(found, starts[-1])
    size = _SIZE.search(token[1]) if token else None
    date = _DATE.search(found)
    return Page(
        date=date[1].decode() if date else None,
        entries=tuple(entries),
        token=unescape((token[2] or b"").decode()).strip() if token else None,
        size=int(size[1]) if size else None,
        lost=tuple(lost),
        torn=closes is None,
    )


def _told(entry: Entry, mended: repair.Mended) -> Entry:
    return entry._replace(fault=mended.fault(entry.start, entry.end))


def _identifier(fragment: bytes) -> str:
    found = _IDENTIFIER.search(fragment)
    return unescape(found[1].decode())[:_SHOWN] if found else ""
