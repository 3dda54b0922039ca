"""Names of restored files: safe on every disk, and the URL can be told from them."""

import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from builder.exports.restore import names as name
from builder.text import is_device
from tests.extent import examples

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
ODD = st.sampled_from(
    [
        "..",
        ".",
        "%2e%2e",
        "",
        "con",
        "NUL.txt",
        "a.",
        "a ",
        "%00",
        "%0a",
        "%2F",
        "..%2f..",
        "~",
        "e%CC%81",
        "%C4%8D",
        "%E8",
        "a" * 300,
        "č" * 200,
        "manifest.jsonl",
        ".sheaf-restore",
        "@",
        "x~0123456789abcdef0123.html",
        "%EF%BC%8E%EF%BC%8E",
        "%ED%A0%80",
        "%E2%80%AE",
        "a\\b",
        "C:",
    ]
)
PART = st.one_of(TEXT, ODD)
URLS = st.one_of(
    TEXT,
    st.builds(
        lambda scheme, host, parts, query: (
            f"{scheme}://{host}/{'/'.join(parts)}" + (f"?{query}" if query else "")
        ),
        st.sampled_from(["http", "https", "ftp", "HTTP"]),
        st.one_of(PART, st.just("a.cz"), st.just("a.cz:8080"), st.just("u:p@a.cz")),
        st.lists(PART, max_size=60),
        PART,
    ),
)
TYPES = st.sampled_from(["", *name.EXTENSIONS, "image/png"])


def check(path: str) -> None:
    """Hold what every path must be."""
    parts = path.split("/")
    assert len(parts) >= 2
    assert len(parts) <= name.DEPTH
    assert len(path.encode()) <= name.WHOLE
    for part in parts:
        assert part not in ("", ".", "..")
        assert len(part.encode()) <= name.LONGEST
        assert part.isprintable()
        assert not set(part) & set('<>:"\\|?*')
        assert part[-1] not in ". "
        assert not is_device(part)
    assert parts[0] not in (name.MANIFEST, ".sheaf-restore")
    assert not parts[0].startswith(".")


@settings(max_examples=examples(120))
@given(URLS, TYPES)
@example("http://../../x", "")
@example("http://a.cz/" + "x/" * 3000, "text/html")
@example("http://a.cz/?" + "q" * 5000, "text/html")
@example("\ud800://\udfff/\udc80", "")
@example(f"http://a.cz/{'x' * 250}/{'x' * 250}/{'x' * 250}/{'x' * 250}/", "")
def test_no_url_gives_a_path_that_leads_out_or_that_a_disk_refuses(url: str, kind: str) -> None:
    found = name.natural(url, kind)
    check(found.path)
    assert name.natural(url, kind) == found
    check(name.mark(found.path, url))
    # A folder that is a file as well: there are paths behind it, so it is no deeper than they.
    assert len(name.mark(name.within(found.path), url).encode()) <= name.WHOLE


@settings(max_examples=examples(120))
@given(st.lists(PART, min_size=1, max_size=8), st.one_of(st.none(), PART))
def test_a_url_can_be_told_from_its_path(parts: list[str], query: str | None) -> None:
    path = "/".join(parts)
    parts = path.split("/")
    assume(not set(path) & set("?#"))
    assume(not set(query or "") & set("#"))
    url = f"http://a.cz/{path}" + ("" if query is None else f"?{query}")
    found = name.natural(url)
    assume(not found.why.startswith("long") and parts[-1] != name.INDEX)
    host, *names = found.path.split("/")
    assert host == "a.cz"
    *folders, last = names
    file, at, asked = last.partition("@")
    told = [*("" if part == "%" else part for part in folders), "" if file == name.INDEX else file]
    assert [unquote_to_bytes(part) for part in told] == [plain(part) for part in parts]
    assert bool(at) == (query is not None)
    assert unquote_to_bytes(asked) == plain(query or "")


def plain(part: str) -> bytes:
    """Return what a part of a URL stands for, which is without what no URL can hold."""
    return unquote_to_bytes(re.sub("[^!#-;=?-~]", lambda m: quoted(m[0]), part))


def quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


@pytest.mark.parametrize(
    ("url", "path", "why"),
    [
        ("http://a.cz", "a.cz/index.html", ""),
        ("https://a.cz/x/", "a.cz/x/index.html", ""),
        ("https://A.cz:443/x.html?q=1&x=/a", "a.cz/x.html@q=1&x=%2Fa", ""),
        ("http://a.cz:8080/x", "a.cz+8080/x", ""),
        ("http://a.cz/x?", "a.cz/x@", ""),
        ("http://u:secret@a.cz/x", "a.cz/x", ""),
        ("http://a.cz/%C4%8D%20d", "a.cz/č d", ""),
        ("http://a.cz/%E8", "a.cz/%E8", "escaped"),
        ("http://a.cz/e%CC%81", "a.cz/e%CC%81", "escaped"),
        ("http://a.cz/../../etc/passwd", "a.cz/%2E%2E/%2E%2E/etc/passwd", "escaped"),
        ("http://a.cz/%2e%2e/x", "a.cz/%2E%2E/x", "escaped"),
        ("http://a.cz/a%2Fb", "a.cz/a%2Fb", "escaped"),
        ("http://a.cz/a//b", "a.cz/a/%/b", "escaped"),
        ("http://a.cz/aux.js", "a.cz/%61ux.js", "escaped"),
        ("http://a.cz/x.", "a.cz/x%2E", "escaped"),
        ("http://a.cz/@me", "a.cz/%40me", "escaped"),
        ("http://manifest.jsonl/x", "%6Danifest.jsonl/x", ""),
        ("http://%4Danifest.jsonl/x", "%4Danifest.jsonl/x", ""),
        ("http://.sheaf-restore/x", "%2Esheaf-restore/x", ""),
        ("http://[::1]/x", "[%3A%3A1]/x", ""),
        ("dns:a.cz", "@dns/a.cz", ""),
        ("ftp://a.cz/x", "@ftp/a.cz/x", ""),
        ("urn:view:http://a.cz/", "@urn/view%3Ahttp%3A/%/a.cz/index.html", "escaped"),
    ],
)
def test_examples(url: str, path: str, why: str) -> None:
    assert name.natural(url) == name.FileName(path, why)


@pytest.mark.parametrize(
    ("url", "kind", "path"),
    [
        ("http://a.cz/x", "text/html", "a.cz/x.html"),
        ("http://a.cz/x.HTM", "text/html", "a.cz/x.HTM"),
        ("http://a.cz/x.php?id=1", "text/html", "a.cz/x.php@id=1.html"),
        ("http://a.cz/s.css?v=2", "text/css", "a.cz/s.css@v=2.css"),
        ("http://a.cz/l", "image/svg+xml", "a.cz/l.svg"),
        ("http://a.cz/l", "image/png", "a.cz/l"),
        ("http://a.cz/", "text/html", "a.cz/index.html"),
    ],
)
def test_an_extension_is_added_where_a_browser_goes_by_it(url: str, kind: str, path: str) -> None:
    assert name.natural(url, kind).path == path


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a.cz/x", "https://a.cz/x", True),
        ("http://a.cz/x", "http://A.CZ:80/x#top", True),
        ("http://a.cz", "https://u:p@a.cz:443/", True),
        ("ftp://a.cz/x", "FTP://a.cz/x", True),
        ("http://a.cz/%zz č", "http://a.cz/%zz%20%C4%8D", True),
        ("http://a.cz/x", "http://a.cz/X", False),
        ("http://a.cz/x", "http://a.cz/x/", False),
        ("http://a.cz/x", "http://a.cz:81/x", False),
        ("http://a.cz/x", "ftp://a.cz/x", False),
        ("http://a.cz/x", "http://www.a.cz/x", False),
        ("http://a.cz/a%2Fb", "http://a.cz/a/b", False),
    ],
)
def test_urls_of_one_identity_have_one_path(one: str, other: str, same: bool) -> None:
    assert (name.identity(one) == name.identity(other)) is same
    assert (name.natural(one).path == name.natural(other).path) is same


def test_what_is_too_long_bears_the_mark_of_its_url_and_keeps_its_extension() -> None:
    found = name.natural(f"http://a.cz/{'x' * 5000}.png?{'y' * 400}")
    assert found.why == "long-name"
    assert re.fullmatch(r"a\.cz/x{234}~[0-9a-f]{20}", found.path)
    assert re.fullmatch(
        r"a\.cz/x{230}~[0-9a-f]{20}\.png", name.natural(f"http://a.cz/{'x' * 5000}.png").path
    )
    deep = name.natural("http://a.cz/" + "/".join(["x"] * 3000))
    assert deep.why == "long-path"
    assert name.natural("http://a.cz/" + "/".join(["x"] * 2999)).path != deep.path


def test_no_natural_name_ends_as_a_marked_one() -> None:
    marked = name.mark("a.cz/x.html", "http://a.cz/x.html")
    assert re.fullmatch(r"a\.cz/x~[0-9a-f]{20}\.html", marked)
    assert name.natural(f"http://{marked}").path == marked.replace("~", "%7E")


def test_letters_that_some_disk_takes_for_one_are_folded_alike() -> None:
    assert name.fold("a.cz/Straße") == name.fold("a.cz/STRASSE")
    assert name.fold("a.cz/é") == name.fold("a.cz/e\u0301")
    assert name.fold("a.cz/ﬁ") == name.fold("a.cz/fi")
