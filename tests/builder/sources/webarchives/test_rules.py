"""Sets by an operator's rules: which captures are in them."""

from dataclasses import replace

import pytest

from builder.sources.webarchives.rules import DocumentRules, SetRule
from functions.config import check
from tests.builder.sources.webarchives.containers import ALL, PAGE, captures, http, warc


def sets(*tables, url=b"http://www.a.cz/news/1", header=b"", body=PAGE, collections=()):
    for table in tables:
        assert check.SET_RULES.test([table])
    rules = DocumentRules(
        domain_sets=False,
        mime_sets=False,
        set_rules=tuple(map(SetRule.from_table, tables)),
        collections=collections,
    )
    fields = header or b"Content-Type: text/html; charset=utf-8"
    (capture,) = captures(warc(http(body, fields), url=url), rules)
    return capture.sets


@pytest.mark.parametrize(
    ("condition", "url", "inside"),
    [
        ({"hosts": ["a.cz"]}, b"http://a.cz/", True),
        ({"hosts": ["A.cz"]}, b"http://WWW.a.CZ:8080/", True),
        ({"hosts": ["b.cz", "a.cz"]}, b"http://x.a.cz/", True),
        ({"hosts": ["a.cz"]}, b"http://aa.cz/", False),
        ({"hosts": ["a.cz"]}, b"http://a.cz.example.org/", False),
        ({"hosts": ["www.a.cz"]}, b"http://a.cz/", False),
        ({"hosts": ["192.0.2.1"]}, b"http://192.0.2.1/", True),
        ({"hosts": ["2001:db8::1"]}, b"http://[2001:db8::1]/", True),
        ({"hosts": ["a.cz"]}, b"urn:x:a.cz", False),
        ({"url_prefixes": ["http://www.a.cz/news/"]}, b"HTTP://WWW.A.cz/news/x", True),
        ({"url_prefixes": ["HTTP://www.A.cz/news/"]}, b"http://www.a.cz/news/x", True),
        ({"url_prefixes": ["http://www.a.cz/news/"]}, b"http://www.a.cz/News/x", False),
        ({"url_prefixes": ["http://www.a.cz/news/"]}, b"https://www.a.cz/news/x", False),
        ({"url_prefixes": ["http://a.cz/š"]}, "http://a.cz/škola".encode(), True),
        ({"types": ["text/html"]}, b"http://a.cz/", True),
        ({"types": ["image/*", "Text/*"]}, b"http://a.cz/", True),
        ({"types": ["image/*", "text/plain"]}, b"http://a.cz/", False),
        ({"languages": ["cs"]}, b"http://a.cz/", True),
        ({"languages": ["c"]}, b"http://a.cz/", False),
        ({"languages": ["en", "CS"]}, b"http://a.cz/", True),
        ({"hosts": ["a.cz"], "types": ["text/html"]}, b"http://a.cz/", True),
        ({"hosts": ["a.cz"], "types": ["image/png"]}, b"http://a.cz/", False),
    ],
)
def test_a_capture_is_in_the_set_if_each_condition_has_a_value_that_fits(condition, url, inside):
    assert sets({"set": "topic", **condition}, url=url) == (("topic",) if inside else ())


def test_a_language_with_a_region_is_of_the_language():
    header = b"Content-Type: text/plain\r\nContent-Language: en-GB, de"
    assert sets({"set": "a", "languages": ["en"]}, header=header, body=b"x") == ("a",)
    assert sets({"set": "a", "languages": ["de"]}, header=header, body=b"x") == ("a",)


def test_collections_are_those_of_the_ingest_and_what_is_below():
    table = {"set": "topic", "collections": ["serials", "a b"]}
    assert sets(table, collections=("collection:serials:novinky",)) == ("topic",)
    assert sets(table, collections=("collection:a!20b",)) == ("topic",)
    assert sets(table, collections=("collection:serials-x",)) == ()
    assert sets(table) == ()


def test_of_several_sets_the_most_specific_ones_are_named():
    hosts = {"hosts": ["a.cz"]}
    found = sets({"set": "b:c", **hosts}, {"set": "a", **hosts}, {"set": "b", **hosts})
    assert found == ("a", "b:c")


def test_rules_come_beside_domain_and_type():
    table = SetRule.from_table({"set": "e", "hosts": ["a.cz"]})
    (capture,) = captures(warc(http()), DocumentRules(set_rules=(table,)))
    assert capture.sets == ("domain:cz:a:www", "e", "mime:text:html")


def test_without_titles_nothing_is_read_of_a_page() -> None:
    page = b"<html lang=cs><meta charset=utf-8><title>Zpr\xc3\xa1vy</title>"
    data = warc(http(page, b"Content-Type: text/html", b"Content-Language: en"))
    (full,) = captures(data)
    (bare,) = captures(data, replace(ALL, titles=False))
    assert (full.title, full.content_languages, full.content_charset) == ("Zprávy", "cs", "utf-8")
    assert (bare.title, bare.content_languages, bare.content_charset) == (None, "en", None)
    read = ("title", "content_languages", "content_charset", "content_charset_source")
    same = dict.fromkeys(read)
    assert replace(full, **same) == replace(bare, **same)
