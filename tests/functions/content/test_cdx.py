"""The index of captures: its parameters, its lines, and how a client goes on behind them."""

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.config import configuration
from functions.content import cdx, memento, query, terms
from functions.content.protocols import BytePlace
from functions.content.search import CaptureSearch
from functions.content.terms import LONGEST, ResumeKey
from functions.http.http_message import Call, Reply
from functions.snapshot import surt
from functions.snapshot.manifest import Manifest
from tests.builder.conftest import NAMESPACE, World, capture

BASE = "https://archive.example.org/stage"


def taken(url: str, date: str | None, **changes: object) -> object:
    """Return a capture of a URL; the same but for its title is the same item."""
    own = url, date, {k: v for k, v in changes.items() if k != "title"}
    number = zlib.crc32(repr(own).encode())
    return capture(
        number,
        identity=f"{number:024}",
        url=url,
        fetch_date=date,
        fetch_time=None,
        **{"url_surtkey": surt.of(url.encode()), **changes},
    )


PAGES = [
    taken("http://example.org/", "2010-01-01T00:00:00Z", content_mime_type="text/html"),
    taken("https://www.example.org/", "2012-01-01T00:00:00Z", content_mime_type="text/html"),
    taken(
        "http://example.org/a b",
        "2011-01-01T00:00:00Z",
        fetch_status=302,
        fetch_redirect="/else where",
    ),
    taken("http://example.org/dir/", "2010-06-01T00:00:00Z"),
    taken("http://example.org/dir/?q=1", "2010-06-02T00:00:00Z"),
    taken("http://example.org/dir/page", "2010-06-03T00:00:00Z"),
    taken("http://example.org/dir-other", "2010-06-04T00:00:00Z"),
    taken("http://example.org:8080/", "2010-01-01T00:00:00Z"),
    taken("http://sub.example.org/", "2010-01-01"),
    taken("http://example-not.org/", "2010-01-01T00:00:00Z"),
    taken("http://example.org.evil.com/", "2010-01-01T00:00:00Z"),
    taken("http://192.0.2.1/", "2010-01-01T00:00:00Z"),
    taken("urn:view:x", None, warc_record_type="resource", fetch_status=None),
]
PAGES += [
    taken(
        "http://many.org/",
        f"2015-{month:02}-01T00:00:00Z",
        content_digest="AB"[month // 7],
        fetch_status=(200, 404)[month % 2],
        warc_record_type="revisit" if month == 12 else "response",
    )
    for month in range(1, 13)
]


PAGES += [
    taken(
        "http://form.org/q?x=1",
        f"2010-01-0{day}T00:00:00Z",
        fetch_method=method,
        fetch_body=body,
        url_surtkey=surt.of_request(b"http://form.org/q?x=1", method, body),
    )
    for day, method, body in ((1, None, None), (2, "POST", "a=1&B=c d"), (3, "HEAD", None))
]


@dataclass
class Index:
    """A published store, and what answers for its captures."""

    search: CaptureSearch
    manifest: Manifest
    settings: configuration.Configuration

    def reply(self, query: str, path: str = "/cdx", **settings: object) -> Reply:
        call = Call("GET", BASE, path, query)
        chosen = configuration.parse(
            "", {f"SHEAF_CONTENT_{k.upper()}": str(v) for k, v in settings.items()}
        )
        return cdx.reply(call, self.search, self.manifest, chosen if settings else self.settings)

    def ask(self, **arguments: object) -> list[str]:
        reply = self.reply(asked(arguments))
        assert reply.status == 200, reply.body
        return reply.body.decode().splitlines()

    def urls(self, **arguments: object) -> list[str]:
        return [line.split(" ")[0] for line in self.ask(output="text", fl="url", **arguments)]

    def stamps(self, **arguments: object) -> list[str]:
        return self.ask(output="text", fl="timestamp", **arguments)


def asked(arguments: dict[str, object]) -> str:
    pairs = [("from" if k == "since" else k, v) for k, v in arguments.items()]
    return urlencode([(k, one) for k, v in pairs for one in (v if isinstance(v, list) else [v])])


@contextmanager
def indexed(folder: Path, *turns: list[object], **settings: str) -> Iterator[Index]:
    """Publish captures, each list in a turn, and search them."""
    world = World(folder / "store")
    for captures in turns:
        world.ingest(captures)  # type: ignore[arg-type]
        manifest = world.publish().manifest
    assert manifest is not None
    repository = world.repository()
    search = CaptureSearch(repository.catalogue, repository.files)
    yield Index(search, manifest, world.configuration(**settings))
    world.close()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with indexed(tmp_path_factory.mktemp("cdx"), PAGES) as index:
        yield index


HOME = ["http://example.org/", "https://www.example.org/"]
DIR = ["http://example.org/dir/", "http://example.org/dir/page", "http://example.org/dir/?q=1"]
REST = ["http://example.org/a%20b", "http://example.org/dir/", "http://example.org/dir-other"]


@pytest.mark.parametrize(
    ("url", "match", "expected"),
    [
        ("example.org", "", HOME),
        ("http://www.example.org/", "exact", HOME),
        ("HTTPS://EXAMPLE.ORG:443", "", HOME),
        ("http:/example.org/", "", HOME),
        ("http://example.org/A%20b", "", ["http://example.org/a%20b"]),
        ("http://example.org/dir/*", "", DIR),
        ("http://example.org/dir/", "prefix", DIR),
        ("http://example.org/dir/?", "prefix", DIR[2:]),
        ("http://example.org/dir", "prefix", [DIR[0], REST[2], *DIR[1:]]),
        ("example.org/*", "", [*HOME, REST[0], DIR[0], REST[2], *DIR[1:]]),
        ("example.org/no/such", "host", [*HOME, REST[0], DIR[0], REST[2], *DIR[1:]]),
        ("example.org:8080", "host", ["http://example.org:8080/"]),
        ("192.0.2.1", "domain", ["http://192.0.2.1/"]),
        ("urn:view:x", "", ["urn:view:x"]),
        ("nowhere.org", "domain", []),
        (
            "*.example.org",
            "",
            [
                *HOME,
                REST[0],
                DIR[0],
                REST[2],
                *DIR[1:],
                "http://sub.example.org/",
                "http://example.org:8080/",
            ],
        ),
    ],
)
def test_what_a_url_and_a_kind_of_match_mean(
    index: Index, url: str, match: str, expected: Sequence[str]
) -> None:
    chosen = {"matchType": match} if match else {}
    assert index.urls(url=url, **chosen) == expected


@pytest.mark.parametrize(
    ("since", "until", "months"),
    [
        ("2015", "2015", range(1, 13)),
        ("201503", "201504", (3, 4)),
        ("20150301000001", None, range(4, 13)),
        (None, "20150301", (1, 2, 3)),
        ("2", "2", range(1, 13)),
        ("2016", None, ()),
    ],
)
def test_dates_are_ranges_of_as_many_digits(
    index: Index, since: str | None, until: str | None, months: Sequence[int]
) -> None:
    given_ = {"since": since, "to": until}
    found = index.stamps(url="many.org", **{k: v for k, v in given_.items() if v})
    assert found == [f"2015{month:02}01000000" for month in months]


@pytest.mark.parametrize(
    ("filters", "months"),
    [
        (["=status:404"], range(1, 12, 2)),
        (["!=status:404"], range(2, 13, 2)),
        (["status:04"], range(1, 12, 2)),
        (["statuscode:4.."], range(1, 12, 2)),
        (["statuscode:4"], ()),
        (["!statuscode:4.."], range(2, 13, 2)),
        (["~timestamp:^20150[1-3]"], (1, 2, 3)),
        (["!~timestamp:^20150", "=digest:B"], (10, 11, 12)),
        (["mimetype:warc/revisit"], (12,)),
        (["=mime:warc/revisit"], (12,)),
        (["=redirect:-"], range(1, 13)),
        (["=url:http://many.org/", "~status:^(200|404)$"], range(1, 13)),
    ],
)
def test_filters(index: Index, filters: list[str], months: Sequence[int]) -> None:
    found = index.stamps(url="many.org", filter=filters)
    assert found == [f"2015{month:02}01000000" for month in months]


def test_neighbours_are_collapsed(index: Index) -> None:
    assert index.stamps(url="many.org", collapse="digest") == ["20150101000000", "20150701000000"]
    assert len(index.stamps(url="many.org", collapse="timestamp:4")) == 1
    assert len(index.stamps(url="many.org", collapse="timestamp:6")) == 12


def test_the_last_and_the_first_and_the_nearest(index: Index) -> None:
    stamps = [f"2015{month:02}01000000" for month in range(1, 13)]
    assert index.stamps(url="many.org", limit=3) == stamps[:3]
    assert index.stamps(url="many.org", limit=-3) == stamps[-3:]
    assert index.stamps(url="many.org", sort="reverse") == stamps[::-1]
    near = index.stamps(url="many.org", closest="20150601", limit=4)
    assert near == [stamps[5], stamps[6], stamps[4], stamps[3]]
    assert index.stamps(url="many.org", closest="2030", sort="closest", limit=1) == stamps[-1:]
    assert index.stamps(url="many.org", closest="1990", filter="=status:404", limit=2) == [
        stamps[0],
        stamps[2],
    ]


def test_lines_of_cdxj(index: Index) -> None:
    (line,) = index.ask(url="example.org/a%20b")
    key, stamp, text = line.split(" ", 2)
    assert (key, stamp) == ("org,example)/a%20b", "20110101000000")
    found = json.loads(text)
    assert found.pop("identifier").startswith(f"oai:{NAMESPACE}:")
    assert found == {
        "url": "http://example.org/a b",
        "mime": "unk",
        "status": "302",
        "digest": "A",
        "redirect": "/else where",
        "length": "100",
        "filename": "a.warc.gz",
        "offset": found["offset"],
    }


def test_lines_of_cdx_have_eleven_fields_and_no_blank_in_one(index: Index) -> None:
    head, line = index.ask(url="example.org/a%20b", output="cdx")
    assert head == " CDX N b a m s k r M S V g"
    fields = line.split(" ")
    assert len(fields) == 11
    assert fields[2] == "http://example.org/a%20b"
    assert fields[6] == "/else%20where"


def test_json_is_a_document_a_line_with_the_names_that_were_asked_for(index: Index) -> None:
    lines = index.ask(url="many.org", output="json", fl="original,timestamp,redirect", limit=2)
    assert [json.loads(line) for line in lines] == [
        {"original": "http://many.org/", "timestamp": f"2015{month:02}01000000"} for month in (1, 2)
    ]


def test_what_has_no_date_is_found_and_says_so(index: Index) -> None:
    assert index.stamps(url="urn:view:x") == ["-"]
    assert index.stamps(url="urn:view:x", since="1") == []


def test_no_line_can_be_broken(index: Index) -> None:
    form = cdx.FORMS["text"]
    (one,) = index.search.captures(
        index.manifest, *terms.exact_range("org,example)/a%20b"), None, 1
    )
    hostile = replace(one, redirect="a\nb c\x00\u2028é", mime="text/html\r\nX: y", url="u\tv")
    for name in ("text", "cdx", "cdxj", "json"):
        form = cdx.FORMS[name]
        text = form.write(hostile, form.fields)
        assert text.splitlines() == [text]
        assert text.isascii()
    assert len(cdx.FORMS["cdx"].write(hostile, cdx.FORMS["cdx"].fields).split(" ")) == 11


_BAD = """
limit=0 limit=x limit=-0 limit=99999999999 limit=%D9%A1 limit=-1&collapse=url limit=-1&sort=reverse
from=2007-01 from=123456789012345 to=x closest=20071301 closest=- closest=2007&reverse=true
closest=2007&sort=reverse closest=2007&matchType=prefix sort=up sort=closest matchType=other
fl= fl=url,url fl=nothing fl=url&fields=url output=xml output=array output=cdx&fl=url
output=%0A%0D%00 filter=x:y filter=status collapse=x collapse=url:0 collapse=url:x
page=1 page=-1 page=x page=0&limit=-1 page=0&sort=reverse page=0&resumeKey=AAAA pageSize=0
resumeKey= resumeKey=AAAA showResumeKey=2 showDupeCount=true showPagedIndex=x offset=5 url=b.cz
"""
BAD = [
    "",
    "url=",
    "url=%20",
    "url=" + "a" * 9000,
    "url=urn:x&matchType=host",
    "url=urn:x&matchType=domain",
    "url=many.org&filter=~url:(",
    "url=many.org&filter=original:a{9999}",
    "url=a.cz&filter=~url:" + "a" * 600,
    "url=a.cz" + "&collapse=url" * 5,
    *(f"url=a.cz&{rest}" for rest in _BAD.split()),
]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_query_is_told_in_one_line(index: Index, text: str) -> None:
    reply = index.reply(text)
    assert (reply.status, reply.type) == (400, "text/plain")
    assert len(reply.body.decode().splitlines()) == 1
    assert len(reply.body) < 1000


@given(st.lists(st.tuples(st.sampled_from([*query.PARAMETERS, "x"]), st.text(max_size=20))))
def test_what_a_stranger_sends_is_a_query_or_is_refused(pairs: list[tuple[str, str]]) -> None:
    with suppress(query.BadQuery):
        found = query.parse_query(pairs, NAMESPACE, ("",))
        assert found.scope.ranges
        assert all(first < last for first, last in found.scope.ranges)


@given(st.text(min_size=1, max_size=50), st.sampled_from(["", *terms.MATCHES]))
def test_the_ranges_of_any_url_ascend_and_hold_its_own_surt(url: str, match: str) -> None:
    with suppress(terms.NoScope):
        found = terms.parse_scope(url, match)
        bounds = [bound for range_ in found.ranges for bound in range_]
        assert bounds == sorted(bounds)
        key = surt.of(found.url.encode("utf-8", "surrogateescape"))
        if not found.url.endswith("?"):  # which stands for arguments alone
            assert any(first <= key < last for first, last in found.ranges)


def walked(index: Index, arguments: dict[str, object], **settings: object) -> list[list[str]]:
    """Return the lines of each answer, following the links that each has."""
    text, pages = asked(arguments), []
    while True:
        reply = index.reply(text, **settings)
        assert reply.status == 200
        lines = reply.body.decode().splitlines()
        link = reply.headers.get("Link")
        if "showResumeKey" in arguments and link:
            *lines, blank, key = lines
            assert blank == ""
            assert f"&resumeKey={key}>" in link
        pages.append(lines)
        assert len(pages) < 100
        if link is None:
            return pages
        match = re.fullmatch(r'<(.*)>; rel="next"', link)
        assert match is not None
        assert match[1].startswith(f"{BASE}/cdx?")
        text = match[1].partition("?")[2]


MANY = [
    {"url": "*.example.org"},
    {"url": "*.example.org", "sort": "reverse"},
    {"url": "example.org/dir/*", "showResumeKey": "true"},
    {"url": "many.org", "filter": "=status:404"},
    {"url": "many.org", "filter": "=timestamp:20151201000000"},  # after answers without a line
    {"url": "many.org", "collapse": "digest"},
    {"url": "many.org", "collapse": "status", "filter": ["!=status:200"]},
]


@pytest.mark.parametrize("arguments", MANY, ids=repr)
@pytest.mark.parametrize("lines", [1, 2, 5])
def test_answer_by_answer_it_is_the_same(
    index: Index, arguments: dict[str, object], lines: int
) -> None:
    bare = {k: v for k, v in arguments.items() if k != "showResumeKey"} | {"output": "text"}
    whole = index.ask(**bare)
    pages = walked(index, arguments | {"output": "text"}, lines=lines)
    assert [line for page in pages for line in page] == whole
    assert all(len(page) <= lines for page in pages)


@pytest.mark.parametrize("limit", [2, 5])
def test_the_last_ones_lead_to_those_before_them(index: Index, limit: int) -> None:
    whole = index.stamps(url="many.org")
    arguments = {"url": "many.org", "limit": -limit, "output": "text", "fl": "timestamp"}
    pages = walked(index, arguments)
    assert [line for page in reversed(pages) for line in page] == whole
    assert pages[0] == whole[-limit:]


def test_a_limit_above_what_an_answer_holds_is_kept_over_several(index: Index) -> None:
    pages = walked(index, {"url": "many.org", "limit": 12, "output": "text"}, lines=5)
    assert list(map(len, pages)) == [5, 5, 2]


PLACES = st.builds(
    BytePlace,
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=512),
    st.integers(0, 10**14 - 1),
    st.integers(0, 2**63 - 1),
)


@given(PLACES, st.sampled_from(["", "0123456789abcdef"]))
def test_a_key_is_read_as_it_was_written(place: BytePlace, mark: str) -> None:
    text = ResumeKey(place, mark).to_text(NAMESPACE)
    assert re.fullmatch(r"[A-Za-z0-9_\-]+", text)
    assert len(text) <= LONGEST
    assert ResumeKey.from_text(text, NAMESPACE) == ResumeKey(place, mark)
    assert ResumeKey.from_text(text, "other.org") is None


@given(PLACES, st.data())
def test_a_key_that_was_altered_is_none(place: BytePlace, data: st.DataObject) -> None:
    text = ResumeKey(place).to_text(NAMESPACE)
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("ABCabc019-_=% é"))
    other = text[:at] + letter + text[at + 1 :]
    assert other == text or ResumeKey.from_text(other, NAMESPACE) is None


def test_a_key_of_another_url_is_refused(index: Index) -> None:
    store = index.manifest.store
    key = ResumeKey(BytePlace("org,example)/", 1, 1)).to_text(NAMESPACE, store)
    assert index.reply(f"url=example.org&resumeKey={key}").status == 200
    assert index.reply(f"url=many.org&resumeKey={key}").status == 400


def test_a_key_of_another_store_is_refused(index: Index) -> None:
    """Captures of one URL and time are told apart by positions, which another store has not."""
    assert index.manifest.store
    place = ResumeKey(BytePlace("org,example)/", 1, 1))
    for store in ("", "f" * 32):
        key = place.to_text(NAMESPACE, store)
        assert index.reply(f"url=example.org&resumeKey={key}").status == 400


def test_answers_to_other_methods_are_found_by_their_own_arguments(index: Index) -> None:
    """As in pywb: by the URL alone comes the page, by a prefix come all."""
    url = "http://form.org/q?x=1"
    assert index.stamps(url=url) == ["20100101000000"]
    assert index.stamps(url=f"{url}&__wb_method=POST&a=1&b=C D") == ["20100102000000"]
    assert index.stamps(url=f"{url}&__wb_method=HEAD") == ["20100103000000"]
    assert index.stamps(url=f"{url}&__wb_method=PUT") == []
    assert len(index.stamps(url="form.org/q", matchType="prefix")) == 3
    assert index.stamps(url="form.org", matchType="host", filter="=method:POST") == [
        "20100102000000"
    ]
    (line,) = index.ask(url=f"{url}&__wb_method=POST&a=1&B=c d")
    key, _, text = line.split(" ", 2)
    assert key == "org,form)/q?__wb_method=post&a=1&b=c%20d&x=1"
    found = json.loads(text)
    assert (found["url"], found["method"], found["requestBody"]) == (url, "POST", "a=1&B=c d")
    for path in ("/timemap/link", "/timegate"):
        call = Call("GET", BASE, f"{path}/{url}", "")
        answer = memento.timemap if path == "/timemap/link" else memento.timegate
        reply = answer(call, index.search, index.manifest, index.settings)
        told = reply.body.decode() + str(reply.headers)
        assert "Fri, 01 Jan 2010 00:00:00 GMT" in told
        assert "Jan 2010 00:00:00 GMT" not in told.replace("01 Jan 2010", "")
