"""URLs of files become ids."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builder.http.url import BAD, NORMAL, SCHEME, USERINFO, Url, normalise

SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "repec" / "vectors.json"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("HTTPS://WWW.Example.ORG/A/b", "https://www.example.org/A/b"),
        ("http://example.org:80/a/./b/../c", "http://example.org/a/c"),
        ("https://example.org:8443/", "https://example.org:8443/"),
        ("https://example.org", "https://example.org/"),
        ("https://example.org?", "https://example.org/?"),
        ("  URL: http://example.org/a\n   b .pdf ", "http://example.org/ab.pdf"),
        ("http://žluť.cz/kůň?q=č", "http://xn--lu-yta1h.cz/k%C5%AF%C5%88?q=%C4%8D"),
        ("http://example.org/%7ea%2fb%2Dc", "http://example.org/~a%2Fb-c"),
        ("http://example.org/a%b", "http://example.org/a%b"),
        ("http://example.org//a///b", "http://example.org//a///b"),
        (
            "http://example.org/?z=1&a=2&utm_source=x#part",
            "http://example.org/?z=1&a=2&utm_source=x",
        ),
        ("ftp://example.org/pub/a.ps.Z", "ftp://example.org/pub/a.ps.Z"),
        # What a server tells apart stays apart.
        ("http://x.org/a?b=%7E#c", "http://x.org/a?b=~"),
        ("http://x.org/%%37e", "http://x.org/%%37e"),  # %7e would be another's escape
        ("http://x.org/%4%31", "http://x.org/%4%31"),
        ("http://x.org/a/", "http://x.org/a/"),
        ("https://www.x.org/index.html?utm_source=x", "https://www.x.org/index.html?utm_source=x"),
        ("ftp://x.org/pub/A%2fB", "ftp://x.org/pub/A%2FB"),
        ("example.org/a.pdf", None),
        ("", None),
        ("A title in place of a URL", None),
    ],
)
def test_ids(raw: str, expected: str | None) -> None:
    assert normalise(raw).id == expected


def test_the_shared_ids() -> None:
    if not SHARED.is_file():
        pytest.skip(f"no ids to compare with: {SHARED} is not there")
    for vector in json.loads(SHARED.read_text("utf-8"))["url_normalisation"]:
        assert normalise(vector["raw"]).id == vector["normalised"]


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ("http://user:secret@x.org/a", USERINFO),
        ("https://user@x.org/", USERINFO),
        ("gopher://x.org/a", SCHEME),
        ("file:///etc/passwd", SCHEME),
        ("mailto:x@y.org", BAD),
        ("http://", BAD),
        ("http:///a", BAD),
        ("http://x.org:99999/", BAD),
        ("https: https://drive.example/1", BAD),
        ("http://x.org/\ud800", BAD),
    ],
)
def test_what_is_the_id_of_no_file(raw: str, fault: str) -> None:
    assert (normalise(raw).id, normalise(raw).fault) == (None, fault)


@pytest.mark.parametrize(
    ("raw", "spaced"),
    [
        ("http://x.org/a b", True),
        ("http://x.org/a\n  b", False),
        ("URL: http://x.org/a", False),
        (" http://x.org/a ", False),
    ],
)
def test_space_within_a_line_is_told(raw: str, spaced: bool) -> None:
    assert normalise(raw).spaced is spaced


@given(st.text(alphabet="aZ0~%.2e7E/?#:@\\ \tüß-_!'()[]|^`{}<>\"", max_size=40))
@example("%%37e")
@example("%2e%2e/%2E/a")
@example("%4%31%41")
def test_an_id_is_its_own_id(rest: str) -> None:
    found = normalise("http://x.org/" + rest)
    if found.id is not None:
        assert normalise(found.id) == type(found)(found.id)


@given(st.from_regex(NORMAL, fullmatch=True))
def test_what_needs_no_parser_comes_out_of_it_unchanged(url: str) -> None:
    assert normalise(url) == normalise(f" {url}") == Url(url)  # a space leads to the parser
