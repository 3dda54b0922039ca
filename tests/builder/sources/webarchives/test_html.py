"""Titles are those that browsers show: what follows from the standard, case by case."""

import time

import pytest

from builder.sources.webarchives.html import title_and_language
from tests.builder.sources.webarchives.containers import captures, http, warc

# page: its title by HTML, sections 13.2.5 and 13.2.6; None where it has none
PAGES = {
    # A title cannot close itself.
    b"<title/>x</title>": "x",
    b"<title />x</title>": "x",
    b"<TITLE foo/>x</TITLE>": "x",
    b"<title a=/>x</title>": "x",
    b"<title/><title>y</title>": "<title>y",
    b"<script/><title>no</title></script><title>yes</title>": "yes",
    b"<style/><title>no</title></style><title>yes</title>": "yes",
    b"<textarea/><title>no</title></textarea><title>yes</title>": "yes",
    # Where its text ends
    b"<title>a</titlex>b</title>": "a</titlex>b",
    b"<title>a</title x='>'>b": "a",
    b"<title>a</title/>b": "a",
    b"<title>a</tITle\n>b": "a",
    b"<title>a <title/> b</title>": "a <title/> b",
    b"<title>a<!-- c --></title>": "a<!-- c -->",
    b"<title>open <b>x</b>": "open <b>x</b>",
    b"<title>open</title": "open</title",
    b"<title>a\x00b</title>": "a\ufffdb",
    b"<title>&lt;b&gt; &amp &copy; &notit; &#x80;</title>": "<b> & © ¬it; €",
    b"<title\x0c>x</title>": "x",
    b"<title<>no</title>": None,
    b"<title": None,
    # Which title counts
    b"<title>one</title><title>two</title>": "one",
    b"<title> </title><title>two</title>": None,
    b"<body>text<title>yes</title>": "yes",
    b"<html></body><title>yes</title>": "yes",
    b"<table><title>yes</title></table>": "yes",
    b"<html><frameset><title>no</title></frameset>": None,
    b"<p>x<frameset><title>yes</title>": "yes",
    # Comments, and what is taken for them
    b"<!-- <title>no</title> --><title>yes</title>": "yes",
    b"<!--><title>yes</title>": "yes",
    b"<!---><title>yes</title>": "yes",
    b"<!-- --!><title>yes</title>": "yes",
    b"<!-- <title>no</title>": None,
    b"<? <title>?><title>yes</title>": "yes",
    b"</ <title>no</title><title>yes</title>": "yes",
    b"<![CDATA[<title>x</title>]]>": None,
    # Elements whose content is text
    b"<script>'<title>no</title>'</script><title>yes</title>": "yes",
    b"<script><!-- <script> </script> <title>no</title> --></script><title>yes</title>": "yes",
    b"<script><!-- <script></script> --><title>no</title></script><title>yes</title>": "yes",
    b"<script><!--></script><title>yes</title>": "yes",
    b"<style><title>no</title></style><title>yes</title>": "yes",
    b"<textarea><title>no</title></textarea><title>yes</title>": "yes",
    b"<noscript><title>no</title></noscript><title>yes</title>": "yes",
    b"<iframe><title>no</title></iframe><title>yes</title>": "yes",
    b"<plaintext><title>no</title>": None,
    b"<template><title>no</title></template><title>yes</title>": "yes",
    b"<template><template></template><title>no</title></template><title>yes</title>": "yes",
    # SVG and MathML
    b"<svg><title>no</title></svg><title>yes</title>": "yes",
    b"<svg><title/></svg><title>yes</title>": "yes",
    b"<svg/><title>yes</title>": "yes",
    b"<svg><title>no</svg><title>yes</title>": "yes",
    b"<svg><g><title>no</title></g><p><title>yes</title>": "yes",
    b"<svg><foreignObject><title>yes</title></foreignObject></svg>": "yes",
    b"<svg><style><title>no</title></style></svg><title>yes</title>": "yes",
    b"<svg><![CDATA[<title>no</title>]]></svg><title>yes</title>": "yes",
    b"<svg><font><title>no</title></font><font color=red><title>yes</title>": "yes",
    b"<div><svg></div><title>yes</title>": "yes",
    b"<template><svg></template><title>yes</title>": "yes",
    b"<math><title>no</title></math><title>yes</title>": "yes",
    b"<math><mi><title>yes</title></mi></math>": "yes",
    # Attributes
    b"<a href='<title>no</title>'><title>yes</title>": "yes",
    b'<a href="x><title>no</title>': None,
    b"<a =<title>x</title>": None,
    b"<x:title>no</x:title><title>yes</title>": "yes",
    b"<titl\x00e>no</title><title>yes</title>": "yes",
}


@pytest.mark.parametrize("page", PAGES)
def test_a_title_is_what_browsers_show(page: bytes) -> None:
    assert title_and_language(page, "utf-8")[0] == PAGES[page]


@pytest.mark.parametrize(
    ("page", "language"),
    [
        (b"<html lang=cs/><title>x</title>", "cs/"),
        (b"<html lang=cs><html lang=en><title>x</title>", "cs"),
        (b"<p><html lang='c&#115;'><title>x</title>", "cs"),
        (b"<!-- <html lang=en> --><html data-lang=de LANG=cs>", "cs"),
        (b"<template><html lang=en></template><html lang=cs><title>x</title>", "cs"),
        (b"<title>x</title><html lang=cs>", None),
    ],
)
def test_the_language_is_that_of_the_html_element(page: bytes, language: str | None) -> None:
    assert title_and_language(page, "utf-8")[1] == language


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        (b"text/html", "<p>x</p>"),
        (b"application/xhtml+xml", None),
        (b"text/html; charset=x", "<p>x</p>"),
    ],
)
def test_in_xhtml_a_title_can_close_itself(kind: bytes, title: str | None) -> None:
    page = b"<?xml version='1.0'?><html lang='cs'><base/><title/><p>x</p>"
    (capture,) = captures(warc(http(page, b"Content-Type: " + kind)))
    assert (capture.title, capture.content_languages) == (title, "cs")


HOSTILE = [
    b"<div>",
    b"<svg>",
    b"<title",
    b"<svg><title>",
    b"</",
    b"<!--",
    b"<script><!--",
    b"<b a='",
    b"<template>",
    b"<font x",
    b"<style>",
    b"&",
    b"</x>",
    b"<p>",
]


@pytest.mark.parametrize("second", [b"", b"</x>", b"<title>"])
@pytest.mark.parametrize("first", HOSTILE)
def test_time_grows_with_the_page(first: bytes, second: bytes) -> None:
    half = 1 << 15
    page = (first * half)[:half] + (second * half)[:half] + b"<title>x</title>"
    started = time.process_time()
    title_and_language(page, "utf-8")
    assert time.process_time() - started < 1.5
