"""Every defect is told of with its line, code and severity, and costs no template."""

import pytest

from builder.sources.redif.form.specification import CODES
from builder.sources.redif.form.template import Template
from tests.builder.sources.redif.samples import (
    ARCHIVE,
    BOOK,
    GOOD,
    PAPER,
    SERIES,
    diagnostics,
    events,
    one,
    said,
    templates,
    with_line,
    without,
)

E, W = "error", "warning"

DEFECTS = {
    # the defect: the file, and what is said of it
    "no-bytes": (b"", [(0, E, "empty-file")]),
    "byte-order-mark-alone": (b"\xef\xbb\xbf", [(0, E, "no-template")]),
    "blank-lines-alone": (b"\r\n\n \n", [(0, E, "no-template")]),
    "page-of-html": (b"\r\n<!DOCTYPE html>\n<html>404</html>", [(1, E, "html")]),
    "page-of-html-around": (b"<HTML><PRE>\n" + PAPER, [(1, E, "html")]),
    "notice-of-php": (b"<br />\n<b>Notice</b>: Undefined", [(1, E, "html")]),
    "prose": (b"\nNot a template.\nNor this.\n", [(2, E, "bad-line"), (0, E, "no-template")]),
    "prose-before": (b"Hello\n\n" + PAPER, [(1, E, "bad-line")]),
    "first-line-lost": (
        b"# a comment\nTitle: a\n rug\nHandle: b\n\n" + SERIES,
        [(2, E, "start-with-template-type")],
    ),
    "indented-template-type": (
        b" " + PAPER,
        [(1, E, "bad-line"), (2, E, "start-with-template-type"), (0, E, "no-template")],
    ),
    "template-type-misspelt": (
        PAPER.replace(b"Template-Type", b"late-type"),
        [(1, E, "start-with-template-type"), (0, E, "no-template")],
    ),
    "no-version": (PAPER.replace(b" 1.0", b""), [(1, E, "unknown-template-type")]),
    "no-space-before-version": (PAPER.replace(b" 1.0", b"1.0"), [(1, E, "unknown-template-type")]),
    "html-behind-version": (
        PAPER.replace(b" 1.0", b" 1.0<br />"),
        [(1, E, "unknown-template-type")],
    ),
    "obsolete-type": (
        b"Template-Type: ReDIF-Mirror 1.0\nUser: dude\n",
        [(1, E, "unknown-template-type")],
    ),
    "colon-word-in-abstract": (
        PAPER.replace(b" the room", b"Purpose: the room"),
        [(8, E, "unknown-attribute")],
    ),
    "attribute-misspelt": (with_line("Abstrct: a"), [(2, E, "unknown-attribute")]),
    "attribute-of-another-type": (
        with_line("Maintainer-Email: a@example.org"),
        [(2, E, "unknown-attribute")],
    ),
    "workplace-before-author": (
        with_line("Author-WorkPlace-Name: Lanes"),
        [(2, E, "misplaced-attribute")],
    ),
    "email-behind-title": (
        with_line("Author-Email: a@example.org", at=6),
        [(7, E, "misplaced-attribute")],
    ),
    "template-type-lost-between": (PAPER + without("Template-Type"), [(23, E, "cannot-repeat")]),
    "no-title": (without("Title"), [(1, E, "required-absent")]),
    "empty-title": (PAPER.replace(b" On Rugs", b""), [(1, E, "required-absent")]),
    "no-author-nor-editor": (without("Editor-Name", BOOK), [(1, E, "required-absent")]),
    "no-handle": (without("Handle"), [(1, E, "required-absent")]),
    "no-url-of-archive": (without("URL", ARCHIVE), [(1, E, "required-absent")]),
    "empty-file-url": (PAPER.replace(b" http://example.org/rugs.pdf", b""), [(9, W, "key-empty")]),
    "title-as-file-url": (
        PAPER.replace(b"http://example.org/rugs.pdf", b"On Rugs"),
        [(9, W, "url-space"), (9, E, "invalid-value")],
    ),
    "doubled-file-url": (PAPER.replace(b"http://", b"https:https://"), [(9, E, "invalid-value")]),
    "template-tag-as-file-url": (
        PAPER.replace(b"http://example.org/rugs.pdf", b"<%=url%>"),
        [(9, E, "invalid-value")],
    ),
    "homepage-without-scheme": (
        with_line("Provider-Homepage: www.example.org", SERIES, at=3),
        [(4, W, "invalid-value")],
    ),
    "two-e-mail-addresses": (
        PAPER.replace(b"dude@", b"a@example.org, dude@"),
        [(4, W, "invalid-value")],
    ),
    "month-13": (PAPER.replace(b"1998-03", b"1998-13"), [(11, W, "invalid-value")]),
    "format-in-words": (
        PAPER.replace(b"application/pdf", b"Adobe Acrobat"),
        [(10, W, "invalid-value")],
    ),
    "jel-in-words": (with_line("Classification-JEL: none"), [(2, W, "invalid-value")]),
    "handle-of-five": (SERIES.replace(b":wpaper", b":paper"), [(6, E, "invalid-value")]),
    "handle-with-spaces": (
        PAPER.replace(b"RePEc:aaa:wpaper:", b"RePEc: aaa: wpaper: "),
        [(12, E, "invalid-value")],
    ),
    "url-broken-after-hyphen": (
        PAPER.replace(b"rugs.pdf", b"big-\n rugs.pdf"),
        [(9, E, "url-split")],
    ),
    "url-over-two-lines": (PAPER.replace(b"rugs.pdf", b"\n rugs.pdf"), [(9, W, "url-space")]),
    "title-of-1001": (PAPER.replace(b"On Rugs", b"R" * 1001), [(6, W, "too-long")]),
    "url-of-501": (PAPER.replace(b"rugs.pdf", b"r" * 482), [(9, W, "too-long")]),
    "title-of-one": (PAPER.replace(b"On Rugs", b"."), [(6, W, "too-short")]),
    "publisher-of-series": (SERIES.replace(b"Provider-", b"Publisher-"), [(3, W, "deprecated")]),
    "institution-outside-provider": (
        with_line("Provider-Institution: RePEc:edi:derugus", SERIES),
        [(2, W, "deprecated")],
    ),
    "byte-81-of-no-encoding": (PAPER.replace(b"On", b"O\x81"), [(6, W, "undecodable")]),
    "broken-utf-8-behind-a-mark": (
        b"\xef\xbb\xbf" + PAPER.replace(b"On", b"\xab"),
        [(6, W, "undecodable")],
    ),
    "cyrillic-without-a-declaration": (
        PAPER.replace(b"On Rugs", "Российская Экономическая Школа".encode("cp1251")),
        [(6, W, "other-encoding")],
    ),
    "form-feed": (PAPER.replace(b"On", b"O\x0cn"), [(1, W, "control-character")]),
    "template-of-2000-lines": (
        PAPER + b"Note: a\n" * 2000 + SERIES,
        [(1, E, "template-too-large")],
    ),
}
LIMITED = {"template-of-2000-lines": 4096}
HELD = {"unreadable", "repeated-handle"}
"""Codes that no file by itself can have; see test_redif_command."""


def test_each_code_has_a_defect() -> None:
    codes = {code for _, expected in DEFECTS.values() for _, _, code in expected}
    assert codes == set(CODES) - HELD


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_told_of(name: str) -> None:
    data, expected = DEFECTS[name]
    limit = LIMITED.get(name, 1 << 20)
    assert said(data, limit) == expected
    assert len(templates(data, limit)) == sum(
        line.lower().startswith(b"template-type:")
        for line in data.removeprefix(b"\xef\xbb\xbf").splitlines()
    )
    assert {d.file for d in diagnostics(data)} <= {"a.rdf"}
    for event in events(data, limit):
        if isinstance(event, Template):  # only errors make it invalid
            assert event.valid == all(d.severity != E for d in event.diagnostics)


@pytest.mark.parametrize("data", GOOD, ids=lambda data: data[15:32].decode().strip())
def test_a_good_template_is_told_nothing_of(data: bytes) -> None:
    found = one(data)
    assert (found.diagnostics, found.valid) == ((), True)
    assert found.type == data.splitlines()[0].partition(b": ")[2].decode()


@pytest.mark.parametrize(
    ("data", "suggestion"),
    [
        (with_line("Abstrct: a"), "Abstract"),
        (with_line("Titel: a"), "Title"),
        (with_line("Provider-Home: x", SERIES, at=3), "Provider-Name or Provider-Phone"),
        (with_line("Workplace-Name: x"), ""),
        (with_line("Purpose: x"), ""),
        (with_line("Author-Email: a@b.org", at=6), "Author-Name"),
        (PAPER.replace(b" 1.0", b""), "ReDIF-Paper 1.0"),
        (without("Title"), "Title"),
        (without("Editor-Name", BOOK), "Author-Name or Editor-Name"),
    ],
)
def test_what_may_have_been_meant_is_suggested(data: bytes, suggestion: str) -> None:
    assert diagnostics(data)[0].suggestion == suggestion


def test_what_is_long_or_frequent_makes_no_long_diagnostics() -> None:
    (long,) = diagnostics(with_line("A" * 100_000 + ": x"))
    assert (len(long.message) < 200, long.suggestion) == (True, "")
    large = diagnostics(PAPER.replace(b"http://", b"x" * 100_000))
    assert [d.code for d in large] == ["invalid-value", "too-long"]
    assert max(len(d.message) for d in large) < 200
    many = diagnostics(PAPER + b"Titel: x\n" * 100)
    assert [d.suggestion for d in many] == ["Title"] * 20 + [""] * 80


@pytest.mark.parametrize("line", ["DOI: 10.1000/182", "X-Rug: 1", "Provider-X-Rug: 1"])
def test_a_doi_and_local_attributes_are_known(line: str) -> None:
    assert said(with_line(line)) == []
    assert line.partition(": ")[0].lower() in one(with_line(line)).structure
