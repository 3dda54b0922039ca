"""Pages: references lead to the files beside them, and every other byte stays as it is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.exports.restore import pages
from builder.exports.restore.plan import Planned
from functions.content.replay.references import rewrite_css
from tests.extent import examples

KEPT = {
    "http://a.cz/": "a.cz/index.html",
    "http://a.cz/x.html": "a.cz/x.html",
    "http://a.cz/dir/p.html": "a.cz/dir/p.html",
    "http://a.cz/i?a=1&b=2": "a.cz/i@a=1&b=2",
    "http://a.cz/s.css": "a.cz/s.css",
    "http://b.cz/l.png": "b.cz/l.png",
    "http://a.cz/%C5%BElu%C5%A5.png": "a.cz/žluť.png",
    "http://a.cz/q?t=%9Elu%9D": "a.cz/q@t=%9Elu%9D",
    "http://a.cz/old%E8": "a.cz/old%E8",
}


class Kept:
    def path(self, url: str) -> str | None:
        return KEPT.get(url)


def planned(media_type: str = "text/html", url: str = "http://a.cz/dir/p.html") -> Planned:
    return Planned(url[5:], url, "2007", "oai:x", 200, "", media_type, None, "a.cz/dir/p.html", "")


def html(text: str | bytes, content_type: str = "text/html; charset=utf-8") -> str:
    data = text.encode() if isinstance(text, str) else text
    found = pages.rewrite_page(data, planned(), content_type, Kept())
    assert found is not None
    return found.decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<a href="/x.html">', '<a href="../x.html">'),
        ("<a href='/dir/../x.html#top'>", '<a href="../x.html#top">'),
        ("<a class=b href=//a.cz/x.html id=c>", '<a class=b href="../x.html" id=c>'),
        ("<A HREF = http://a.cz/x.html\n>", '<A HREF = "../x.html"\n>'),
        ('<a href="/i?a=1&amp;b=2">', '<a href="../i@a=1&amp;b=2">'),
        ('<a href="/i?a=1&b=2">', '<a href="../i@a=1&amp;b=2">'),
        ('<img src="//b.cz/l.png">', '<img src="../../b.cz/l.png">'),
        ('<img src="/\tx.ht\nml ">', '<img src="../x.html">'),
        ('<a href="/žluť.png">', '<a href="../%C5%BElu%C5%A5.png">'),
        ('<a href="/%C5%BElu%C5%A5.png">', '<a href="../%C5%BElu%C5%A5.png">'),
        ('<a href="p.html#x">', '<a href="#x">'),
        ('<a href="p.html">', '<a href="p.html">'),
        ('<a href="none.html">', '<a href="http://a.cz/dir/none.html">'),
        ('<a href="http://else.cz/">', '<a href="http://else.cz/">'),
        ('<a href="#top">', '<a href="#top">'),
        ('<a href="">', '<a href="">'),
        ('<a href="javascript:go()">', '<a href="javascript:go()">'),
        ('<a href="mailto:a@b.cz">', '<a href="mailto:a@b.cz">'),
        ('<img src="data:image/gif;base64,x">', '<img src="data:image/gif;base64,x">'),
        ('<a href="http://[x/">', '<a href="http://[x/">'),
        (
            '<img srcset="/x.html 1x, none.png 2x,data:a,b 3x">',
            '<img srcset="../x.html 1x, http://a.cz/dir/none.png 2x, data:a,b 3x">',
        ),
        (
            '<meta http-equiv="refresh" content="0; url=/x.html">',
            '<meta http-equiv="refresh" content="0; url=../x.html">',
        ),
        (
            "<META CONTENT=\"5;URL='/x.html'\" HTTP-EQUIV=Refresh>",
            '<META CONTENT="5;URL=../x.html" HTTP-EQUIV=Refresh>',
        ),
        (
            "<meta http-equiv=refresh content=\" 0 ; url = '/x.html' \">",
            '<meta http-equiv=refresh content=" 0 ; url = ../x.html">',
        ),
        ("<meta http-equiv=refresh content=30>", "<meta http-equiv=refresh content=30>"),
        ('<meta name=description content="/x.html">', '<meta name=description content="/x.html">'),
        (
            "<p style=\"background: url('/x.html')\">",
            '<p style="background: url(&quot;../x.html&quot;)">',
        ),
        (
            "<style>p { background: url(/x.html) }</style>",
            '<style>p { background: url("../x.html") }</style>',
        ),
        ("<script>a = '<a href=/x.html>'</script>", "<script>a = '<a href=/x.html>'</script>"),
        ("<textarea><a href=/x.html></textarea>", "<textarea><a href=/x.html></textarea>"),
        ("<!-- <a href=/x.html> -->", "<!-- <a href=/x.html> -->"),
        ('<a title="<a href=/x.html>">', '<a title="<a href=/x.html>">'),
        ('<base href="/"><a href="x.html">', '<base data-href="/"><a href="../x.html">'),
        (
            '<link rel=stylesheet href=/s.css integrity="sha256-x" crossorigin>',
            '<link rel=stylesheet href="../s.css" data-integrity="sha256-x" data-crossorigin>',
        ),
        (
            "<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">",
            "<meta data-http-equiv=Content-Security-Policy content=\"default-src 'self'\">",
        ),
        ('<form action="/x.html">', '<form action="../x.html">'),
        ('<object data="/x.html"></object>', '<object data="../x.html"></object>'),
        ('<p data="/x.html" action="/x.html">', '<p data="/x.html" action="/x.html">'),
        ('<use xlink:href="/x.html#i"/>', '<use xlink:href="../x.html#i"/>'),
        ('<a href="/x.html" href="/other">', '<a href="../x.html" href="http://a.cz/other">'),
        ('x < y <a href="/x.html', 'x < y <a href="/x.html'),
        ("<a =href=/x.html>", "<a =href=/x.html>"),
    ],
)
def test_references_of_a_page(before: str, after: str) -> None:
    assert html(before) == after


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text",
    [
        f'<meta http-equiv=refresh content="0;url=x{" " * 200_000}y">',
        f"<meta http-equiv=refresh content='\"{' ' * 200_000}y'>",
        f"<meta {'content ' * 50_000}>",
        f'<img srcset="{"a," * 100_000}">',
        f'<p style="{"url(" * 100_000}">',
    ],
    ids=["refresh", "quote", "contents", "srcset", "style"],
)
def test_it_takes_no_more_time_than_a_page_is_long(text: str) -> None:
    # What took the square of it would take minutes, which no test may.
    assert html(text)


def test_a_reference_is_read_in_the_encoding_of_its_page() -> None:
    text = (
        '<meta charset=windows-1250><a href="/žluť.png"><a href="/q?t=žluť">žluť</a>'
        '<a href="/oldč">'
    )
    found = pages.rewrite_page(text.encode("cp1250"), planned(), "", Kept())
    assert found is not None
    assert found.decode("cp1250") == (
        '<meta charset=windows-1250><a href="../%C5%BElu%C5%A5.png">'
        '<a href="../q@t=%259Elu%259D">žluť</a><a href="../old%25E8">'
    )


def test_what_is_written_by_its_number_does_not_break_the_encoding() -> None:
    before = "<p style=\"background:url(/x.html);content:'&#269;&eacute;é'\">"
    found = pages.rewrite_page(
        before.encode("cp1250"), planned(), "text/html;charset=cp1250", Kept()
    )
    assert found == (
        b"<p style=\"background:url(&quot;../x.html&quot;);content:'&#269;&#233;&#233;'\">"
    )


def test_utf_16_stays_that() -> None:
    found = pages.rewrite_page('<a href="/x.html">č'.encode("utf-16"), planned(), "", Kept())
    assert found == '<a href="../x.html">č'.encode("utf-16")


@settings(max_examples=examples(80))
@given(
    st.binary(max_size=200), st.sampled_from(["", "text/html; charset=utf-8", "x; charset=big5"])
)
def test_bytes_without_references_stay_as_they_are(data: bytes, content_type: str) -> None:
    found = pages.rewrite_page(data, planned(), content_type, Kept())
    assert found is None or found == data or b"=" in data or b"(" in data


@settings(max_examples=examples(80))
@given(
    st.lists(
        st.sampled_from(
            [
                "<a ",
                "href=",
                "'",
                '"',
                "/x.html",
                ">",
                "<style>",
                "url(",
                ")",
                "\\",
                "<!--",
                "-->",
                "srcset=",
                "</style>",
                "&#1;",
                "\x00",
                "@import ",
                "/*",
                "*/",
                "<meta http-equiv=refresh content=",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_no_page_breaks_it_and_once_is_enough(text: str) -> None:
    once = html(text)
    if "/x.html" not in text:
        assert once == text or "http://a.cz/" in once or '"' in once or "data-" in once


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a{b:url(/x)}", 'a{b:url("N/x")}'),
        ("a{b:URL( '/x' )}", 'a{b:url("N/x")}'),
        ('@import "/x" screen;', '@import "N/x" screen;'),
        ("@import url(/x);", '@import url("N/x");'),
        ("/* url(/x) */", "/* url(/x) */"),
        ('a{content:"url(/x)"}', 'a{content:"url(/x)"}'),
        ("a{b:url(\\2f x)}", 'a{b:url("N/x")}'),
        ("a{b:url(/a\\)b)}", 'a{b:url("N/a)b")}'),
        ('a{content:"open\n;b:url(/x)}', 'a{content:"open\n;b:url("N/x")}'),
        ("a{b:url(/x", "a{b:url(/x"),
        ("/* url(/x)", "/* url(/x)"),
    ],
)
def test_references_of_a_style_sheet(before: str, after: str) -> None:
    assert rewrite_css(before, lambda written, role: "N" + written) == after


def test_a_style_sheet_leads_from_where_it_lies() -> None:
    found = pages.rewrite_page(
        '@charset "windows-1250"; a{b:url(/žluť.png)}'.encode("cp1250"),
        planned("text/css", "http://a.cz/dir/s.css"),
        "text/css",
        Kept(),
    )
    assert found == b'@charset "windows-1250"; a{b:url("../%C5%BElu%C5%A5.png")}'
