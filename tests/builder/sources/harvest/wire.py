"""What is wrong with what repositories send, each by its name, and what it does to an answer."""

import gzip
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from email.utils import format_datetime
from functools import partial
from urllib.parse import quote

from tests.builder.sources.harvest.provider import Answer, Call, OfAnswer, Provider

_HTML = b"<!DOCTYPE html><html><head><title>Sorry</title></head><body><p>Back soon<br></body>"
_TITLE = b"<dc:title>"
_PAGE = "text/html; charset=utf-8"
_NAMESPACE = b' xmlns="http://www.openarchives.org/OAI/2.0/"'
_ECHO = b'<request from="2020-01-01"'


def once(change: OfAnswer) -> OfAnswer:
    """Return a change to a list's pages that befalls each when it is asked for the first time."""

    def changed(provider: Provider, call: Call, answer: Answer) -> Answer:
        return change(provider, call, answer) if call.is_list and not call.times else answer

    return changed


def always(change: Callable[[Answer], Answer]) -> OfAnswer:
    return lambda provider, call, answer: change(answer)


def body(change: Callable[[bytes], bytes]) -> OfAnswer:
    """Return a change to each body of a list."""
    return lambda provider, call, answer: (
        replace(answer, body=change(answer.body)) if call.is_list else answer
    )


def status(code: int, after: str | None = None) -> OfAnswer:
    def change(provider: Provider, call: Call, answer: Answer) -> Answer:
        said = Answer(code, {"Content-Type": "text/html"}, _HTML)
        return said if after is None else said.headed(Retry_After=after)

    return once(change)


def _later(code: int) -> OfAnswer:
    def change(provider: Provider, call: Call, answer: Answer) -> Answer:
        return Answer(code, {"Retry-After": provider.retry_after}, b"")

    return once(change)


def _at_a_date(provider: Provider, call: Call, answer: Answer) -> Answer:
    """Say when to come again, by a clock of its own: the harvester's is another one."""
    date = format_datetime(provider.now, usegmt=True)
    return Answer(503, {"Retry-After": date, "Date": format_datetime(provider.now, True)}, b"")


def _cut(**more: bool) -> OfAnswer:
    return always(lambda answer: replace(answer, cut=len(answer.body) * 2 // 3, **more))


def _cut_gzip(provider: Provider, call: Call, answer: Answer) -> Answer:
    packed = gzip.compress(answer.body)
    return replace(answer, body=packed[:-20]).headed(Content_Encoding="gzip")


def _packed(name: str, pack: Callable[[bytes], bytes], asked: bool = True) -> OfAnswer:
    """Return the coding of a body, where it is accepted, or whether it is or not."""

    def change(provider: Provider, call: Call, answer: Answer) -> Answer:
        if asked and name not in call.accepts:
            return answer
        return replace(answer, body=pack(answer.body)).headed(Content_Encoding=name)

    return change


def _kind(kind: str) -> OfAnswer:
    return always(lambda answer: answer.headed(Content_Type=kind))


def _written(name: str, code: str) -> OfAnswer:
    """Return what the prolog says its encoding is, and what it is."""

    def change(answer: Answer) -> Answer:
        text = answer.body.decode().replace('encoding="UTF-8"', f'encoding="{name}"')
        return replace(answer, body=text.encode(code, "xmlcharrefreplace"))

    return always(change)


def _in_titles(some: bytes) -> OfAnswer:
    """Return bytes that stand at the begin of each title."""
    return body(lambda data: data.replace(_TITLE, _TITLE + some))


def _prefixed(data: bytes) -> bytes:
    """Write the elements of OAI-PMH with a prefix, and what is in others as it is."""
    data = data.replace(b' xmlns="http://www.openarchives', b' xmlns:o="http://www.openarchives')
    return re.sub(rb"<(/?)(?=[a-zA-Z])(?![a-z_]+:|leader|datafield|subfield|/)", rb"<\1o:", data)


def _stamped(old: bytes, new: bytes) -> OfAnswer:
    return body(lambda data: re.sub(old, new, data))


def _redirect(host: str, code: int) -> OfAnswer:
    def change(provider: Provider, call: Call, answer: Answer) -> Answer:
        if "moved" in call.arguments:
            return answer
        query = "&".join(
            f"{name}={quote(value, safe='')}" for name, value in call.arguments.items()
        )
        at = f"http://{host}:{provider.port}/oai?moved=1&{query}"
        return Answer(code, {"Location": at}, b"")

    return change


DEFECTS: Mapping[str, tuple[str, OfAnswer]] = {
    "503": ("comes again after Retry-After, `retry_after`", _later(503)),
    "503-date": ("comes again at a date", once(_at_a_date)),
    "503-plain": ("comes again some time", status(503)),
    "503-nonsense": ("comes again at no time", status(503, "soon")),
    "429": ("asked too often: comes again after `retry_after`", _later(429)),
    "500": ("fails", status(500)),
    "502": ("a proxy fails", status(502)),
    "504": ("a proxy gives up", status(504)),
    "hang": (
        "says nothing for `hang` seconds",
        once(lambda p, c, a: replace(a, pause=p.hang, silent=True)),
    ),
    "cut": ("less than Content-Length says", once(_cut())),
    "cut-chunked": ("chunks without the last one", once(_cut(chunked=True))),
    "cut-unseen": ("the connection ends in the midst of the document", once(_cut(close=True))),
    "cut-gzip": ("gzip without its end", once(_cut_gzip)),
    "reset": (
        "the connection ends before an answer",
        once(always(lambda a: replace(a, silent=True))),
    ),
    "html": (
        "an error page with HTTP 200",
        once(always(lambda a: Answer(200, {"Content-Type": _PAGE}, _HTML))),
    ),
    "empty": ("a body of nothing with HTTP 200", once(body(lambda data: b""))),
    "gzip": ("gzip, to who accepts it", _packed("gzip", gzip.compress)),
    "deflate": ("deflate as HTTP has it", _packed("deflate", zlib.compress)),
    "raw-deflate": (
        "deflate as some have it",
        _packed("deflate", partial(zlib.compress, wbits=-15)),
    ),
    "gzip-unasked": ("gzip to everybody", _packed("gzip", gzip.compress, asked=False)),
    "gzip-untold": (
        "gzip without a word of it",
        always(lambda a: replace(a, body=gzip.compress(a.body))),
    ),
    "says-gzip": ("said to be gzip", always(lambda a: a.headed(Content_Encoding="gzip"))),
    "html-type": ("text/html", _kind("text/html")),
    "no-type": ("no Content-Type", always(lambda a: replace(a, headers={}))),
    "wrong-charset": ("charset=iso-8859-1 for UTF-8", _kind("text/xml; charset=iso-8859-1")),
    "latin1": ("ISO 8859-1 that is said to be UTF-8", _written("UTF-8", "latin-1")),
    "latin1-told": ("ISO 8859-1", _written("ISO-8859-1", "latin-1")),
    "cp1252": ("Windows-1252", _written("windows-1252", "cp1252")),
    "utf-16": ("UTF-16", _written("UTF-16", "utf-16")),
    "control-characters": ("U+0000, U+000B and U+001B", _in_titles(b"\x00a\x0bb\x1b")),
    "non-characters": ("U+FFFE and U+FFFF", _in_titles(b"\xef\xbf\xbe\xef\xbf\xbf")),
    "surrogates": ("halves of characters as UTF-8", _in_titles(b"\xed\xa0\xbd\xed\xb8\x80")),
    "bad-bytes": ("bytes that are no UTF-8", _in_titles(b"\xff\xc3")),
    "control-references": ("references to U+000B and U+FFFF", _in_titles(b"&#11;&#xFFFF;&#x1b;")),
    "entities": ("entities of HTML", _in_titles(b"&nbsp;&eacute;&Scaron;")),
    "bare-ampersand": ("& that is not escaped", _in_titles(b"B & C, R&D;")),
    "bom": ("a byte order mark", body(lambda data: b"\xef\xbb\xbf" + data)),
    "leading-lines": ("lines before the XML declaration", body(lambda data: b"\n\n  " + data)),
    "leading-warning": ("a warning before it", body(lambda data: b"<b>Warning</b>: x\n" + data)),
    "trailing-comment": ("a comment behind the document", body(lambda data: data + b"<!-- 1s -->")),
    "trailing-html": ("HTML behind the document", body(lambda data: data + b"<br>Notice: x")),
    "prefixed": ("elements have a prefix", body(_prefixed)),
    "no-namespace": (
        "the namespace is missing",
        body(lambda data: data.replace(_NAMESPACE, b"", 1)),
    ),
    "day-stamps": (
        "days as datestamps, though Identify promises seconds",
        _stamped(rb"(<datestamp>[-0-9]{10})[^<]*", rb"\1"),
    ),
    "odd-stamps": (
        "datestamps with fractions and an offset",
        _stamped(rb"(<datestamp>[-0-9]{10}T[0-9:]{8})Z", rb"\1.123+00:00"),
    ),
    "no-date": (
        "no responseDate",
        always(
            lambda a: replace(a, body=re.sub(rb"<responseDate>.*?</responseDate>", b"", a.body))
        ),
    ),
    "odd-date": (
        "responseDate with a fraction",
        always(
            lambda a: replace(a, body=re.sub(rb"Z</responseDate>", b".5Z</responseDate>", a.body))
        ),
    ),
    "echoed-from": (
        "echoes a from that nobody sent",
        always(lambda a: replace(a, body=a.body.replace(b"<request", _ECHO, 1))),
    ),
    "redirect": ("another place of the same host", _redirect("127.0.0.1", 302)),
    "redirect-host": ("another host", _redirect("localhost", 302)),
    "moved": ("moved for good", _redirect("127.0.0.1", 301)),
    "chunked": ("chunks", always(lambda a: replace(a, chunked=True))),
    "close": ("each answer ends its connection", always(lambda a: replace(a, close=True))),
}
"""By name: what it does, and how. What befalls a page once is over when it is asked for again."""
