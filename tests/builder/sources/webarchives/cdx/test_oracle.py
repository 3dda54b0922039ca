"""What SQL makes of plain lines is what Python makes of them, and most lines are plain."""

import base64
import datetime
import functools
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.intake.captures import Capture
from builder.intake.intake import CAPTURES
from builder.sources.webarchives.cdx import block as index_block
from builder.sources.webarchives.cdx import columns, index_entry, notation
from builder.sources.webarchives.cdx.block import IndexFile
from builder.sources.webarchives.cdx.text import LineBlock
from builder.sources.webarchives.rules import DocumentRules, SetRule
from tests.builder.indexes import ALL, NOTHING, SHA1, line, rows
from tests.extent import examples

_FIELDS = [column.name for column in CAPTURES[2:]]
RULED = DocumentRules(
    set_rules=(
        SetRule("own:a", hosts=("a.cz",)),
        SetRule("own:b", url_prefixes=("http://b.cz/x",), types=("text/*",)),
        SetRule("own:a:c", types=("image/png",)),
    )
)

# Pieces that URLs are made of, the plain and the nasty.
_SCHEMES = (
    ["http://"] * 6
    + ["https://"] * 3
    + [
        "HTTP://",
        "ftp://",
        "http://http://",
        "https://http:/",
        "dns:",
        "",
        "http:/",
        "file:///",
        "http://u:p@",
        "warcinfo:/",
        "urn:pageinfo:http://",
        "metadata://",
        "http:///",
        "http://@",
    ]
)
_HOSTS = ["www.a.cz"] * 4 + [
    "a.cz",
    "WWW2.A.cz",
    "b.co.uk",
    "b.cz:80",
    "b.cz:443",
    "b.cz:8080",
    "b.cz:",
    "192.0.2.1",
    "[::1]:80",
    "xn--hkyrky-ptac70bc.fi",
    "hákyrky.fi",
    "a..cz",
    ".a.cz.",
    "a_b.cz",
    "-a.cz",
    "localhost",
    "a%2ecz",
    "www.www.cz",
    "www1.cz",
    "co.uk",
    "a.cz:99999999",
    "a:b:c",
    "1.2.3.4.5",
    "x" * 300,
]
_PIECES = [
    "/",
    "//",
    "/.",
    "/..",
    "/./",
    "/../",
    "/...",
    "/.well-known",
    "a",
    "B",
    "index.html",
    "~user",
    "/a/b/",
    "?",
    "&",
    "=",
    "a=1",
    "&b=2",
    "&B=2&a",
    "&&",
    "==",
    "?x=1?y",
    "id=5",
    "&sid=" + "0a" * 16,
    "jsessionid=" + "0b" * 16,
    ";jsessionid=" + "0a" * 16,
    ";JSESSIONID=" + "0A" * 16,
    "phpsessid=" + "1" * 32,
    "aspsessionidabcdefgh=" + "b" * 24,
    "cfid=1&cftoken=2",
    "/(" + "a1" * 12 + ")/x.aspx",
    "(x)",
    "/(",
    "/(s(" + "a1" * 12 + "))/a.aspx",
    "%20",
    "%2F",
    "%2f",
    "%41",
    "%7E",
    "%25",
    "%2520",
    "%252f",
    "%c3%a9",
    "%E1",
    "%",
    "%4",
    "%zz",
    "%%41",
    "%0a",
    "%00",
    "%7f",
    "%23",
    "%3F",
    "%26",
    "%3D",
    "%5B",
    "[",
    "]",
    "{",
    "}",
    "|",
    "^",
    "`",
    "'",
    "$",
    "!",
    "*",
    ",",
    ";",
    ":",
    "@",
    "+",
    "\\",
    "#",
    "#f?x",
    "<",
    ">",
    '"',
    " ",
    "é",
    "č",
    "\u0085",
    "\x7f",
    ".",
    "..",
    "%2e",
    "%2E%2e",
    "%5c",
]
_URLS = st.builds(
    lambda scheme, host, pieces: scheme + host + "".join(pieces),
    st.sampled_from(_SCHEMES),
    st.sampled_from(_HOSTS),
    st.lists(st.sampled_from(_PIECES), max_size=7),
)
_DATES = st.sampled_from(
    ["20080430204826"] * 8
    + ["20080430204826123", "200804302048261", "20080431204826", "20080430244826", "20080430235960"]
    + ["00000430204826", "20080430", "2008", "20080430204860", "20240229000000", "20230229000000"]
)
_VALUES = {
    "mime": ["text/html"] * 5
    + [
        "-",
        "",
        None,
        "unk",
        "TEXT/HTML; charset=x",
        "image/png",
        "warc/revisit",
        "warc/request",
        5,
        1.5,
        True,
    ]
    + [
        "application/xhtml+xml",
        "text",
        "a/b/c",
        {"a": 1},
        ["a/b"],
        "Warc/Revisit",
        "warc-info",
        "é/é",
        "text/anvl",
        "application/warc-fields",
        "multipart/form-data",
    ],
    "status": ["200"] * 5
    + [
        200,
        "-",
        "",
        None,
        "301",
        404,
        "304",
        "000",
        "0",
        "99",
        "1000",
        "-1",
        "2 0",
        True,
        200.0,
        "٢٠٠",
    ],
    "digest": [SHA1] * 5
    + [
        "sha1:" + SHA1,
        "SHA1:" + SHA1.lower(),
        "sha-1:" + SHA1,
        "-",
        "",
        None,
        "d41d8cd98f00b204e9800998ecf8427e",
    ]
    + [
        "sha256:" + "0a" * 32,
        "sha-256:" + "0a" * 32,
        "sha256:" + "0A" * 32,
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    ]
    + [NOTHING] * 3
    + ["2" * 32, "x", "md5:" + "0a" * 16, "sha1:x", SHA1.lower(), 7, "0a" * 32, "0a" * 64],
    "length": ["1043"] * 4
    + [1043, "-", "", None, "-5", "1e3", "9" * 18, "9" * 19, 1.5, " 5", "+5", "0x10"],
    "offset": ["333"] * 4 + [333, "-", None, "-1", "99999999999", False, "1_0"],
    "filename": ["a.warc.gz"] * 4
    + [
        "x/y/a.warc.gz",
        "-",
        "",
        None,
        "a",
        "true",
        "č.warc",
        "1.5",
        1.5,
        1e300,
        {"a.b": 1},
        "[a.b]",
        "{a.b",
        "a\\b.warc",
    ],
    "redirect": [None] * 5 + ["-", "", "http://b.cz/", "é"],
    "truncated": [None] * 5 + ["-", "length", "LENGTH", "what ever", "time", "true", True],
    "ref": [None] * 8 + ["warcfile:a.warc#77"],
    "mct": [None] * 8 + ["text/plain"],
    "rou": [None] * 8 + ["http://c.cz/"],
    "uri": [None] * 8 + ["http://d.cz/"],
    "more": [None] * 5 + [[1], {"a": None}, "{", "[", "\\", "nested"],
}


def made(lines, legend=None, rules=ALL):
    """Return what Python makes of lines: rows by column, and reasons of those left out."""
    found, reasons = [], []
    for one in lines:
        said, _ = notation.parse_cdx_line(one, legend) if legend else notation.parse_cdxj_line(one)
        item = index_entry.build_capture(said, rules)[0] if said else None
        if isinstance(item, Capture):
            row = {name: getattr(item, name) for name in _FIELDS}
            time = row["fetch_time"]
            row["fetch_time"] = time and time.astimezone(datetime.UTC).replace(tzinfo=None)
            found.append({"identity": item.identity, "sets": list(item.sets), **row})
        else:
            reasons.append(item.reason if item else "damaged")
    return found, sorted(reasons)


@functools.cache
def connected(rules):
    return index_block.connection(IndexFile("i", Path(), "0", rules))


def built(folder, lines, legend=None, rules=ALL):
    """Return the same of the builder's, and how many of the lines were plain."""
    index = IndexFile("i", folder, "0", rules)
    connection = connected(rules)
    block = LineBlock(0, 0, b"\n".join(lines), legend)
    result = index_block.read(connection, block, index)
    found = rows(folder, "captures") if result.path else []
    ((plain,),) = connection.execute("SELECT count(*) FROM lines WHERE plain").fetchall()
    if result.path:
        result.path.unlink()
    assert result.captures == len(found)
    return found, sorted(result.skips.elements()), plain


def same(folder, lines, legend=None, rules=ALL):
    expected, left_out = made(lines, legend, rules)
    found, skips, plain = built(folder, lines, legend, rules)

    def order(row):
        return repr(sorted((k, repr(v)) for k, v in row.items()))

    assert sorted(found, key=order) == sorted(expected, key=order)
    assert skips == left_out
    return plain


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.tuples(_URLS, _DATES), min_size=1, max_size=100),
    st.sampled_from([ALL, DocumentRules(), RULED]),
)
def test_nasty_urls_and_dates(tmp_path, items, rules):
    same(tmp_path, [line(url, date) for url, date in items], rules=rules)


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.fixed_dictionaries({k: st.sampled_from(v) for k, v in _VALUES.items()}), max_size=100
    ),
    st.sampled_from([ALL, DocumentRules(), DocumentRules(domain_sets=False, mime_sets=False)]),
)
def test_nasty_values(tmp_path, items, rules):
    same(tmp_path, [line(**values) for values in items] + [line()], rules=rules)


@pytest.mark.thorough
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.text('{}[]":, \\/0a\t\r\x00\x7f-!é', max_size=3)),
        max_size=60,
    )
)
def test_damaged_lines(tmp_path, damages):
    lines = [line()]
    for at, junk in damages:
        whole = line("http://www.a.cz/a?b=1&a=2", more="x").decode("utf-8")
        broken = (whole[:at] + junk + whole[at + 1 :]).encode()
        if broken and not broken.startswith(b"!"):
            lines.append(broken)
    same(tmp_path, lines)


@pytest.mark.parametrize("form", notation.FORMS)
def test_nasty_fields(tmp_path, form):
    draw = random.Random(form)
    letters = {
        "N": ["cz,a)/"],
        "A": ["a.cz/"],
        "e": ["192.0.2.1", "-"],
        "c": [SHA1, "d41d8cd98f00b204e9800998ecf8427e", "-"],
        "b": ["20080430204826"] * 5 + ["2008", "20080431204826", "20080430204826123", "-"],
        "m": ["text/html", "-", "warc/revisit", "warc/request", "unk"],
        "s": ["200", "-", "404", "x"],
        "k": [SHA1, "-", "sha1:" + SHA1, "x"],
        "r": ["-", "http://b.cz/"],
        "M": ["-", "AI"],
        "S": ["5", "-", "x"],
        "V": ["5", "77", "-", "x"],
        "v": ["5", "-"],
        "n": ["5"],
        "g": ["a.arc.gz", "b/a.arc.gz", "-"],
    }
    lines = []
    for _ in range(400):
        urls = ["http://www.a.cz/" + "".join(draw.choices(_PIECES, k=draw.randint(0, 3)))]
        values = [draw.choice(urls if one == "a" else letters[one]) for one in form.split()]
        values += draw.choice([[], [], [], ["x"], ["5", "6", "b.warc.gz"]])
        text = " ".join(values[: draw.choice([99, 99, 99, 5])]) + draw.choice(["", "", "\r"])
        lines.append(text.encode().replace(b"\n", b""))
    plain = same(tmp_path, lines, notation.Legend(tuple(form.split())))
    assert plain > 10


def test_ordinary_urls_are_plain(tmp_path):
    urls = [
        "http://www.a.cz",
        "http://www.a.cz/",
        "https://A.cz:8080/a/b.html?b=2&a=1&a",
        "http://192.0.2.1/x?id=5&c",
        "http://a.cz/wiki/X_(y)",
        "http://a.cz/a//b",
        "http://a.cz/%C3%A9?u=http%3A%2F%2Fb.cz%2F",
        "http://a.cz/.well-known",
        "http://a.cz/a,b;c=1",
        "http://a.cz/a?",
        "http://a.cz/[x]?a[]=1",
    ]
    plain = same(tmp_path, [line(url) for url in urls])
    assert plain == len(urls) - 1  # but brackets


def test_identities_in_sql():
    connection = index_block.connection(IndexFile("i", None, "0", ALL))
    draw = random.Random(1)
    hashes = [draw.randbytes(32).hex() for _ in range(2000)] + ["0" * 64, "f" * 64]
    connection.execute("CREATE TABLE h AS SELECT unnest($h) AS hash", {"h": hashes})
    sql = f"SELECT hash, {columns.IDENTITY} FROM ({columns.halves('FROM h')}), constants"
    for text, identity in connection.execute(sql).fetchall():
        expected = base64.b32encode(bytes.fromhex(text)[:15]).decode().lower()
        assert identity == expected
