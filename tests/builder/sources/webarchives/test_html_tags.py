"""Plain pages: what one expression reads of them is what the search reads, tag by tag."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builder.sources.webarchives.html import find_title
from functions.archive.charset import read_plain_head
from tests.extent import examples

_PIECES = [
    b"<html>",
    b"<html lang=cs>",
    b"<HTML LANG='en' xml:lang=\"cs-CZ\">",
    b"<html lang=''>",
    b"<html",
    b"<html xml:lang=cs class=no-js>",
    b"<html xmlns='http://www.w3.org/1999/xhtml' xml:lang='en'>",
    b'<html lang = "sk" lang="cs">',
    b"<html data-lang=de>",
    b'<html lang="&#99;s">',
    b"<html lang>",
    b"<html lang=c&s>",
    b"<html manifest=a lang=cs/>",
    b"<html hreflang=cs lang=de>",
    b"<!DOCTYPE html>",
    b'<!doctype HTML PUBLIC "-//W3C//DTD HTML 4.01//EN">',
    b"<!DOCTYPE>",
    b'<?xml version="1.0" encoding="utf-8"?>',
    b"<?php echo 1 ?>",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\x0c",
    b"<head>",
    b"<head profile=x>",
    b"</head>",
    b"<body>",
    b"<base href=/>",
    b"<isindex>",
    b"</html>",
    b"<meta charset=utf-8>",
    b'<meta name="a" content="a > b"/>',
    b"<meta content='it''s'>",
    b"<meta http-equiv=Content-Type content='text/html; charset=windows-1250'>",
    b'<meta a="<title>">',
    b"<link rel=x href=//a.cz/?a=1&b=2 />",
    b"<link/>",
    b'<link rel="a"title="b">',
    b"<meta",
    b"<!-- note -->",
    b"<!---->",
    b"<!-- a-b -c- -->",
    b"<!--->",
    b"<!--a--->",
    b"<!--a--!>",
    b"<!-->",
    b"<!-- a -- b -->",
    b"<!-- <title>no</title> -->",
    b"<!--",
    b"<script>var a = 1 > 0;</script>",
    b"<script src=a></script >",
    b"<script>'</title>'</script>",
    b"<script/>",
    b"<script><!-- x --></script>",
    b"<style>a{b:c}</style>",
    b"<style>",
    b"<svg>",
    b"<title>one</title>",
    b"<TITLE> two\r\n  lines </TITLE>",
    b"<title>Zpr\xc3\xa1vy</title>",
    b"<title>\xe8esky</title>",
    b"<title>a &amp; b</title>",
    b"<title>&nbsp;a & b &&amp;quot;&ndash;&frac12;</title>",
    b"<title>&#65;</title>",
    b"<title>&amp</title>",
    b"<title>&copy</title>",
    b"<title>&lang;&rang;&AMP;&apos;&hellip;&Auml;&sup2;</title>",
    b"<title>a&b</title>",
    b"<title>&lt;b&gt;</title>",
    b"<title>&</title>",
    b"<title>&unknown; &there4;</title>",
    b"<title>&zwnj;&shy;</title>",
    b"<title>a < b</title>",
    b"<title></title>",
    b"<title>\x01\x85\xc2\x85\xef\xbf\xbe</title>",
    b"<title lang=x>three</title>",
    b"<title>",
    b"text",
    b"<title>\xc3</title>",
    b"<title>\xf0\x9f\x98\x80</title>",
    b"</title>",
    b" ",
    b"\r\n",
    b"\t",
    b"<",
    b"<noscript><title>n</title></noscript>",
    b"<template><title>t</title></template>",
    b"&amp;",
    b"]]>",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=9))
@example([b"<html lang=cs>", b"<head>", b"<title>one</title>"])
@example([b"<html\x0blang=pl>", b"<title>one</title>"])
@example([b"<html lang=\x0bp>", b"<title>one</title>"])
@settings(max_examples=examples(1500), deadline=None)
def test_a_plain_page_is_read_as_the_search_reads_it(pieces: list[bytes]) -> None:
    page = b"".join(pieces)
    assert read_plain_head(page) in (None, find_title(page))


@given(st.lists(st.one_of(st.sampled_from(_PIECES), st.binary(max_size=3)), max_size=9))
@settings(max_examples=examples(500), deadline=None)
def test_any_other_page_is_read_as_the_search_reads_it(pieces: list[bytes]) -> None:
    page = b"<html lang=cs><head>" + b"".join(pieces) + b"<title>last</title>"
    assert read_plain_head(page) in (None, find_title(page))


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (b"<html lang=cs><head><title>a</title>", (b"a", b"cs")),
        (b"<!DOCTYPE html>\n<html>\n<head>\n<meta charset=utf-8>\n<title>a", None),
        (b"<title>a</title>", (b"a", None)),
        (b"<html xml:lang='cs'><script>x > 1</script><title>a</title>", (b"a", b"cs")),
        (b"<html><script>'<b>'</script><title>a</title>", None),
        (b"<html><title>a &amp; b</title>", (b"a &amp; b", None)),
        (b"<html><title>a < b</title>", None),
    ],
)
def test_which_pages_are_plain(page: bytes, found: object) -> None:
    assert read_plain_head(page) == found
