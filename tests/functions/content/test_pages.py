"""Pages by number, and what the Internet Archive's and pywb's servers answer differently."""

import json
from collections.abc import Iterator

import pytest

from functions.content import cdx
from functions.http.http_message import Reply
from functions.snapshot import layout
from functions.store import files
from tests.functions.content.test_cdx import BASE, Index, asked, indexed, taken

pytestmark = pytest.mark.shared(2)

ROWS = 8
HOST = "http://a.org"


def one_of_many(number: int, turn: int) -> object:
    """Return one of 50 URLs on three hosts; of two with the same number the later one replaces."""
    host = ("a", "sub.a", "b")[number % 3]
    return taken(
        f"http://{host}.org/{number % 50}",
        f"2015-01-01T{number % 24:02}:00:00Z",
        title=str(turn),
        content_digest=str(number),
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """A table of URLs with small row groups, in two runs, with versions that were superseded."""
    turns = []
    for turn, numbers in enumerate((range(0, 150), range(140, 170))):
        pages = [one_of_many(n, turn) for n in numbers]
        pages += [
            taken(f"{HOST}/many", "2015-01-01T00:00:00Z", content_digest=f"{turn}{n}")
            for n in range(30)
        ]
        turns.append([*pages, taken(f"urn:x:{turn}", None)])
    folder, lines = tmp_path_factory.mktemp("pages"), str(5 * ROWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "GROUP_ROWS", ROWS)
        with indexed(folder, *turns, SHEAF_CONTENT_LINES=lines) as index:
            yield index


def get(index: Index, path: str, **arguments: object) -> Reply:
    return index.reply(asked(arguments), path)


def whole(index: Index, **arguments: object) -> list[str]:
    """Return all lines of a query, answer by answer."""
    reply = index.reply(asked({"output": "text", **arguments}), lines=100_000)
    assert "Link" not in reply.headers
    return reply.body.decode().splitlines()


QUERIES = [
    {"url": "*.org"},
    {"url": "*.a.org"},
    {"url": "a.org/*"},
    {"url": "a.org/many"},
    {"url": "a.org/1"},
    {"url": "*.org", "filter": "=digest:44"},
    {"url": "*.org", "from": "2015010112", "to": "2015010118"},
    {"url": "nowhere.org"},
    {"url": "urn:x:0"},
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("size", [1, 2, 5, 99])
@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_the_pages_have_each_line_once(index: Index, query: dict[str, str], size: int) -> None:
    told = json.loads(get(index, "/cdx", showNumPages="true", pageSize=size, **query).body)
    assert told["pageSize"] == min(size, 5)
    assert told["pages"] == -(-told["blocks"] // told["pageSize"])
    pages = []
    for number in range(told["pages"]):
        reply = get(index, "/cdx", page=number, pageSize=size, output="text", **query)
        assert (reply.status, reply.headers) == (200, {})
        pages.append(reply.body.decode().splitlines())
    assert [line for page in pages for line in page] == whole(index, **query)
    for page in pages:  # of one URL and second there may be any number
        assert sum("/many" not in line for line in page) <= 2 * ROWS * told["pageSize"]
    beyond = get(index, "/cdx", page=max(1, told["pages"]), pageSize=size, **query)
    assert (beyond.status, len(beyond.body.splitlines())) == (400, 1)


def test_the_internet_archive_counts_pages_by_a_number_and_has_none_behind_them(
    index: Index,
) -> None:
    count = int(get(index, "/cdx/search/cdx", url="*.org", showNumPages="true").body)
    assert count > 9
    for output in ("text", "json"):
        reply = get(index, "/cdx/search/cdx", url="*.org", page=count, output=output)
        assert (reply.status, reply.body) == (200, b"")
    assert get(index, "/cdx/search/cdx", url="nowhere.org", showNumPages="true").body == b"0\n"


def test_a_page_costs_the_same_wherever_it_is(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads two row groups of each run at most. Counting reads none."""
    read, taken_ = files.Files.plain, []

    def plain(self: files.Files, table: str, *place: object) -> object:
        taken_.extend([table] if table == "urls" else [])
        return read(self, table, *place)  # type: ignore[arg-type]

    monkeypatch.setattr(files.Files, "plain", plain)
    count = int(get(index, "/cdx/search/cdx", url="*.org", showNumPages="true").body)
    assert not taken_
    for number in (0, count // 2, count - 1):
        taken_.clear()
        assert get(index, "/cdx/search/cdx", url="*.org", page=number).body
        assert 1 <= len(taken_) <= 4


def test_a_page_that_is_too_large_is_refused(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would lack lines, of which its clients would not know."""
    monkeypatch.setattr(cdx, "LARGEST", 500)
    reply = get(index, "/cdx", url="*.org", page=0)
    assert (reply.status, b"fl" in reply.body) == (413, True)
    assert get(index, "/cdx", url="*.org", page=0, limit=1).status == 200


def test_the_internet_archives_json_is_one_array(index: Index) -> None:
    reply = get(index, "/cdx/search/cdx", url="a.org/1", output="json", fl="timestamp,original")
    assert reply.type == "application/json"
    head, *rows = json.loads(reply.body)
    assert head == ["timestamp", "original"]
    assert rows == [
        line.split(" ") for line in whole(index, url="a.org/1", fl="timestamp,original")
    ]
    assert json.loads(get(index, "/cdx/search/cdx", url="nowhere.org", output="json").body) == []
    reply = get(index, "/cdx/search/cdx", url="*.org", output="json", limit=2, showResumeKey="true")
    _, *rows, blank, (key,) = json.loads(reply.body)
    assert (len(rows), blank) == (2, [])
    following = get(index, "/cdx/search/cdx", url="*.org", output="json", limit=1, resumeKey=key)
    assert (
        json.loads(following.body)[1:]
        == json.loads(get(index, "/cdx/search/cdx", url="*.org", output="json", limit=3).body)[3:]
    )


def test_without_output_it_is_seven_columns(index: Index) -> None:
    reply = get(index, "/cdx/search/cdx/", url="*.org", limit=1)
    assert len(reply.body.decode().split(" ")) == 7
    link = reply.headers["Link"]
    assert link.startswith(f"<{BASE}/cdx/search/cdx?")
    assert get(index, "/cdx/search", url="a.org/1").status == 404


def test_what_has_no_date_is_no_line_where_clients_parse_it(index: Index) -> None:
    assert get(index, "/cdx", url="urn:x:0").body
    assert get(index, "/cdx/search/cdx", url="urn:x:0").body == b""


SAME = [
    ("fields=timestamp", "fl=timestamp"),
    ("from_ts=2015010100", "from=2015010100"),
    ("reverse=1", "sort=reverse"),
    ("closest=&sort=closest", ""),
    ("gzip=false&fastLatest=true&allowFuzzy=0", ""),
    ("offset=0&showDupeCount=false", ""),
    ("showResumeKey=True", ""),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_other_names_and_what_changes_nothing(index: Index, one: str, other: str) -> None:
    found, same = (index.reply(f"url=a.org/1&output=json&{text}") for text in (one, other))
    assert (found.status, found.body) == (200, same.body)
    assert found.body


def test_several_fields_to_collapse_by_are_applied_one_after_the_other(index: Index) -> None:
    given = {"url": "a.org/*", "collapse": ["timestamp:11", "urlkey"]}
    lines = [line.split(" ") for line in whole(index, url="a.org/*")]
    marks, expected = ["", ""], []
    for line in lines:
        for number, mark in enumerate((line[1][:11], line[0])):
            if marks[number] == mark:
                break
            marks[number] = mark
        else:
            expected.append(" ".join(line))
    assert 1 < len(expected) < len(lines)
    assert whole(index, **given) == expected
    text, found = {"output": "text", "limit": 7, "showResumeKey": "true", **given}, []
    key: dict[str, str] = {}
    while True:
        body = get(index, "/cdx", **text, **key).body.decode().splitlines()
        if "" not in body:
            found += body
            break
        found += body[: body.index("")]
        key = {"resumeKey": body[-1]}
    assert found == expected
