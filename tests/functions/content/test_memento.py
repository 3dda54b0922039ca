"""TimeMaps and the TimeGate, as RFC 7089 has them."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.config import configuration
from functions.config.configuration import Configuration
from functions.content import capture_row, memento, neighbours
from functions.http.http_message import Call, Reply
from functions.snapshot import surt
from functions.store.files import Files
from tests.extent import examples
from tests.functions.content.test_cdx import BASE, Index, indexed, taken

URL = "http://example.org/a?b=c&d"
VIDEO, PARTS = "http://example.org/video", "http://example.org/parts"
DATES = [f"20{year:02}-05-01T12:00:00Z" for year in range(5, 15)]
_LINK = re.compile(r'<([^>]*)>((?:; \w+="[^"]*")*)(?:,\s*|$)')


class Gate(Index):
    """A published store, and what answers for its mementos."""

    def call(self, path: str, query: str = "", **headers: str) -> tuple[Call, Configuration]:
        found = {name.replace("_", "-"): text for name, text in headers.items()}
        return Call("GET", BASE, path, query, found), self.settings

    def map(self, path: str, query: str = "", lines: int | None = None) -> Reply:
        call, settings = self.call(path, query)
        if lines is not None:
            settings = configuration.parse("", {"SHEAF_CONTENT_LINES": str(lines)})
        return memento.timemap(call, self.search, self.manifest, settings)

    def gate(self, path: str, query: str = "", **headers: str) -> Reply:
        call, settings = self.call(path, query, **headers)
        return memento.timegate(call, self.search, self.manifest, settings)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    captures = [taken(URL, date) for date in DATES]
    captures += [taken("http://example.org/day", "2010-05-01"), taken("urn:x", None)]
    long = (f"http://example.org/{'x' * length}" for length in (300, 1000, 3000))
    captures += [taken(url, "2010-05-01T00:00:00Z") for url in long]
    captures += [taken('http://example.org/é<"', "2010-05-01T00:00:00Z")]
    statuses = (206, 200, 206, 206, 206)  # parts of a file, and the whole
    captures += [taken(VIDEO, d, fetch_status=n) for d, n in zip(DATES, statuses, strict=False)]
    sizes = (1024, 10240, 2, 1024)  # the second has the bytes 0-10239 of 10240
    parts = zip(DATES, sizes, strict=False)
    captures += [taken(PARTS, d, fetch_status=206, content_length=n) for d, n in parts]
    with indexed(tmp_path_factory.mktemp("memento"), captures) as index:
        yield Gate(index.search, index.manifest, index.settings)


def links(text: str) -> list[tuple[str, Mapping[str, str]]]:
    """Parse link format (RFC 6690, section 2); nothing may be left over."""
    found, end = [], 0
    for match in _LINK.finditer(text.strip()):
        assert match.start() == end
        found.append((match[1], dict(re.findall(r'; (\w+)="([^"]*)"', match[2]))))
        end = match.end()
    assert end == len(text.strip())
    return found


def of(found: list[tuple[str, Mapping[str, str]]], relation: str) -> list[tuple[str, str]]:
    return [
        (address, told.get("datetime", ""))
        for address, told in found
        if relation in told["rel"].split()
    ]


def http(date: str) -> str:
    return format_datetime(datetime.fromisoformat(date), usegmt=True)


def test_a_timemap_lists_the_mementos_by_date(gate: Gate) -> None:
    reply = gate.map("/timemap/link/http://example.org/a", "b=c&d")
    assert (reply.status, reply.type) == (200, "application/link-format")
    found = links(reply.body.decode())
    assert of(found, "original") == [(URL, "")]
    assert of(found, "timegate") == [(f"{BASE}/timegate/{URL}", "")]
    assert of(found, "self") == [(f"{BASE}/timemap/link/{URL}", "")]
    assert [date for _, date in of(found, "memento")] == list(map(http, DATES))
    assert of(found, "first") == of(found, "memento")[:1]
    assert of(found, "last") == of(found, "memento")[-1:]
    stamps = [re.sub(r"\D", "", date) for date in DATES]
    addresses = [address for address, _ in of(found, "memento")]
    assert addresses == [f"{BASE}/web/{stamp}/{URL}" for stamp in stamps]
    listed = json.loads(gate.map("/timemap/json/http://example.org/a", "b=c&d").body)
    assert [row["uri"] for row in listed["mementos"]["list"]] == addresses
    ((_, told),) = (one for one in found if "self" in one[1]["rel"])
    assert (told["from"], told["until"]) == (http(DATES[0]), http(DATES[-1]))
    assert told["type"] == "application/link-format"


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/timemap/link/http://example.org/a", "b=c&d"),
        ("/timemap/link/http:/example.org/a", "b=c&d"),
        ("/timemap/link/http%3A%2F%2Fexample.org%2Fa%3Fb%3Dc%26d", ""),
        ("/timemap/link/example.org/a", "b=c&d"),
        ("/timemap/link/https://www.example.org/a", "d&b=c"),
        ("/timemap/link", "url=http%3A%2F%2Fexample.org%2Fa%3Fb%3Dc%26d"),
        ("/timemap/link/", "url=http%3A%2F%2Fexample.org%2Fa%3Fb%3Dc%26d"),
    ],
)
def test_the_url_is_understood_as_gateways_hand_it_over(gate: Gate, path: str, query: str) -> None:
    reply = gate.map(path, query)
    assert reply.status == 200
    assert len(of(links(reply.body.decode()), "memento")) == len(DATES)
    other = gate.gate(path.replace("/timemap/link", "/timegate"), query)
    assert other.status == 302


@pytest.mark.parametrize("lines", [1, 3, 4, 10])
@pytest.mark.parametrize("form", ["link", "json"])
def test_a_long_timemap_comes_in_parts(gate: Gate, lines: int, form: str) -> None:
    path, query = f"/timemap/{form}/http://example.org/a", "b=c&d"
    dates: list[str] = []
    while True:
        reply = gate.map(path, query, lines)
        assert reply.status == 200
        if form == "link":
            found = links(reply.body.decode())
            some = [date for _, date in of(found, "memento")]
            assert len(of(found, "first")) == (not dates)
            following = [address for address, _ in of(found, "timemap")]
            assert len(of(found, "last")) == (not following)
        else:
            told = json.loads(reply.body)
            own = urlsplit(told["self"])
            assert (own.path.removeprefix("/stage"), own.query) == (
                (path, query) if dates else (f"{path}?{query}".partition("?")[0], "b=c&d")
            )
            some = [http(one["datetime"]) for one in told["mementos"]["list"]]
            assert ("first" in told["mementos"]) == (not dates)
            following = [told["next"]] if "next" in told else []
            assert ("last" in told["mementos"]) == (not following)
        assert len(some) <= lines
        dates += some
        assert (f'<{following[0]}>; rel="next"' if following else None) == reply.headers.get("Link")
        if not following:
            break
        at = urlsplit(following[0])
        path, query = at.path.removeprefix("/stage"), at.query
        assert dict(parse_qsl(query)).keys() == {"url", "after"}
    assert dates == list(map(http, DATES))


def test_a_timemap_as_cdxj_is_lines_of_the_index(gate: Gate) -> None:
    reply = gate.map("/timemap/cdxj/http://example.org/a", "b=c&d")
    lines = reply.body.decode().splitlines()
    assert [line.split(" ")[1] for line in lines] == [re.sub(r"\D", "", date) for date in DATES]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("Sun, 01 May 2005 12:00:00 GMT", 0),
        ("Mon, 01 Jan 1990 00:00:00 GMT", 0),
        ("Sat, 01 Jan 2050 00:00:00 GMT", 9),
        ("Mon, 30 Oct 2006 12:00:00 GMT", 1),
        # Just between two it is the earlier.
        ("Tue, 31 Oct 2006 00:00:00 GMT", 1),
        ("Tue, 31 Oct 2006 00:00:01 GMT", 2),
        (None, 9),
    ],
)
def test_the_timegate_leads_to_the_nearest(gate: Gate, wanted: str | None, expected: int) -> None:
    headers = {} if wanted is None else {"accept_datetime": wanted}
    reply = gate.gate("/timegate/http://example.org/a", "b=c&d", **headers)
    assert reply.status == 302
    assert "accept-datetime" in reply.headers["Vary"]
    assert "Memento-Datetime" not in reply.headers
    found = links(reply.headers["Link"])
    assert (reply.headers["Location"], http(DATES[expected])) in of(found, "memento")
    assert of(found, "original") == [(URL, "")]
    assert of(found, "timemap") == [(f"{BASE}/timemap/link/{URL}", "")]


@pytest.mark.parametrize("url", [VIDEO, PARTS])
@pytest.mark.parametrize("wanted", [None, DATES[0], DATES[4]])
def test_the_timegate_prefers_a_whole_file_to_a_part(
    gate: Gate, wanted: str | None, url: str
) -> None:
    headers = {"accept_datetime": http(wanted)} if wanted else {}
    reply = gate.gate(f"/timegate/{url}", **headers)
    found = of(links(reply.headers["Link"]), "memento")
    assert (reply.headers["Location"], http(DATES[1])) in found


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, ["first", "next", "last"]),
        (1, ["first prev", "", "next", "last"]),
        (4, ["first", "prev", "", "next", "last"]),
        (8, ["first", "prev", "", "next last"]),
        (9, ["first", "prev", "last"]),
    ],
)
def test_the_timegate_tells_of_the_neighbours(gate: Gate, number: int, expected: list[str]) -> None:
    """Each of them is told once, with its date (RFC 7089, section 2.2.2)."""
    text = http(DATES[number])
    reply = gate.gate("/timegate/http://example.org/a", "b=c&d", accept_datetime=text)
    found = links(reply.headers["Link"])
    told = [one["rel"].removesuffix("memento").strip() for _, one in found if "datetime" in one]
    assert told == expected
    assert of(found, "first") == of(found, "memento")[:1]
    for relation, other in (("first", 0), ("prev", number - 1), ("next", number + 1), ("last", 9)):
        dates = [date for _, date in of(found, relation)]
        assert dates == [http(one) for one in (DATES[other : other + 1] if other >= 0 else ())]
    # The addresses are those of the TimeMap.
    listed = of(
        links(gate.map("/timemap/link/http://example.org/a", "b=c&d").body.decode()), "memento"
    )
    assert set(of(found, "memento")) <= set(listed)


@pytest.mark.parametrize("number", [0, 4, 9])
def test_the_links_of_a_memento_read_few_records(
    gate: Gate, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mementos of one URL lie in as many row groups of records as there were publishes."""
    url = surt.of(URL.encode())
    captures = gate.search.captures(gate.manifest, url, url + " ", None, 100)
    assert len(captures) == len(DATES)
    read: list[int] = []
    columns = Files.columns

    def count(self: Files, *args: Any, places: list[int], **named: Any) -> Any:
        read.extend(places)
        return columns(self, *args, places=places, **named)

    monkeypatch.setattr(Files, "columns", count)
    found = neighbours.find_links(gate.search, gate.manifest, BASE, captures[number])
    assert len(found) == (5 if number == 4 else 3)
    assert len(read) <= 4


def test_the_only_memento_is_the_first_and_the_last(gate: Gate) -> None:
    reply = gate.gate("/timegate/http://example.org/day")
    ((_, told),) = [one for one in links(reply.headers["Link"]) if "datetime" in one[1]]
    assert told["rel"] == "first last memento"


@settings(max_examples=examples(40))
@given(st.datetimes(datetime(1990, 1, 1), datetime(2050, 1, 1)))
def test_no_other_memento_is_nearer(gate: Gate, when: datetime) -> None:
    when = when.replace(microsecond=0, tzinfo=UTC)
    text = format_datetime(when, usegmt=True)
    reply = gate.gate("/timegate/http://example.org/a", "b=c&d", accept_datetime=text)
    date = dict(of(links(reply.headers["Link"]), "memento"))[reply.headers["Location"]]
    distances = [abs(datetime.fromisoformat(one) - when) for one in DATES]
    assert abs(parsedate_to_datetime(date) - when) == min(distances)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2007-05-31",
        "Thu, 31 May 2007 20:35:00",
        "Thu, 32 May 2007 20:35:00 GMT",
        "Thu, 31 May 2007 20:35:00 +0100",
        "\x00\n",
    ],
)
def test_a_date_that_is_none_is_refused(gate: Gate, text: str) -> None:
    reply = gate.gate("/timegate/http://example.org/a", accept_datetime=text)
    assert (reply.status, len(reply.body.splitlines())) == (400, 1)


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/timemap", "", 404),
        ("/timemap/html/http://example.org/", "", 404),
        ("/timemap/link", "", 400),
        ("/timemap/link", "url=http://example.org/&x=y", 400),
        ("/timemap/link", "url=http://example.org/&after=1", 400),
        ("/timemap/link", "url=http://example.org/&after=" + "9" * 14 + "." + "9" * 30, 400),
        ("/timemap/link/" + "a" * 9000, "", 400),
        ("/timemap/link/http://nowhere.org/", "", 404),
        ("/timemap/link/urn:x", "", 404),  # it has no date
    ],
)
def test_what_there_is_no_timemap_of(gate: Gate, path: str, query: str, status: int) -> None:
    reply = gate.map(path, query)
    assert (reply.status, len(reply.body.splitlines())) == (status, 1)


def test_of_a_url_without_mementos_the_timegate_knows_nothing(gate: Gate) -> None:
    for path in ("/timegate/http://nowhere.org/", "/timegate/urn:x"):
        reply = gate.gate(path)
        assert reply.status == 404
        assert "accept-datetime" in reply.headers["Vary"]


def test_a_day_counts_as_of_its_first_second(gate: Gate) -> None:
    found = links(gate.map("/timemap/link/http://example.org/day").body.decode())
    assert [date for _, date in of(found, "memento")] == [http("2010-05-01T00:00:00Z")]


def test_no_url_breaks_a_link_or_a_header(gate: Gate) -> None:
    for path in (
        '/timemap/link/http://example.org/é<"',
        "/timemap/link/http://example.org/%C3%A9%3C%22",
    ):
        found = links(gate.map(path).body.decode())
        assert len(of(found, "memento")) == 1
        ((original, _),) = of(found, "original")
        assert original == "http://example.org/%C3%A9%3C%22"
    reply = gate.gate("/timegate/http://example.org/a\r\nX: y", "b=c&d")
    assert reply.status == 404
    assert not any(set(value) & set("\r\n\x00") for value in reply.headers.values())


def test_a_url_that_is_too_long_for_headers_has_links_to_few(gate: Gate) -> None:
    for length, count in ((300, 1), (1000, 0), (3000, 0)):
        reply = gate.gate(f"/timegate/http://example.org/{'x' * length}")
        assert reply.status == 302
        found = links(reply.headers.get("Link", ""))
        assert len(of(found, "memento")) == count
        assert len(of(found, "original")) == (length < 2000)


@pytest.mark.parametrize(
    ("digits", "instant"),
    [
        (20070531203500, datetime(2007, 5, 31, 20, 35, tzinfo=UTC)),
        (20161231235960, datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (20160231000000, datetime.min.replace(tzinfo=UTC)),
        (0, datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_stamps(digits: int, instant: datetime) -> None:
    assert capture_row.to_instant(digits) == instant


def test_the_stamp_of_an_instant_drops_fractions_and_zones() -> None:
    east = timezone(timedelta(hours=2))
    assert (
        capture_row.to_timestamp(datetime(2007, 5, 31, 22, 35, 1, 999_999, tzinfo=east))
        == 20070531203501
    )
    assert capture_row.to_timestamp(datetime(987, 1, 2, tzinfo=UTC)) == 9870102000000
