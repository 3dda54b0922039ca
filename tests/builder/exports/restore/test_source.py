"""Both sources of a restore: a store read in this process, and the same one asked over HTTP."""

import argparse
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from builder.exports.restore import captures, sources
from builder.exports.restore.captures import CaptureFilter, CaptureSource, ListedCapture
from builder.store.context import Context
from tests.builder.exports.restore.shelf import FILES, PAGE, Shelf, fill
from tests.e2e.conftest import make_home

ALL = CaptureFilter(None, (), captures.LAST_SECOND)


@pytest.fixture(scope="module")
def source(address: str, shelf: Shelf) -> Iterator[CaptureSource]:
    with closing(opened(shelf, address)) as found:
        yield found


def opened(shelf: Shelf, address: str) -> CaptureSource:
    arguments = argparse.Namespace(store=str(shelf.store), config=str(shelf.home.config))
    return sources.open_source(Context(arguments, dict(os.environ)), address)


def told(found: Iterator[ListedCapture]) -> list[tuple[str, str]]:
    return sorted({(one.url, one.stamp) for one in found})


def choice(*urls: str, set_: str | None = None, until: str = captures.LAST_SECOND) -> CaptureFilter:
    return CaptureFilter(set_, urls, until)


def test_all_captures_are_listed_whichever_way(source: CaptureSource) -> None:
    found = {one.identifier: one for one in source.captures(ALL)}
    assert len(found) == 12
    assert {one.url for one in found.values()} == {*FILES, "http://www.a.cz/moved"}
    by_url = source.captures(choice("*.a.cz", "b.cz", "c.cz"))
    assert {one.identifier: one for one in by_url} == found
    by_set = source.captures(choice(set_="domain:cz"))
    assert {one.identifier: one for one in by_set} == found


def test_what_is_known_of_a_capture(source: CaptureSource) -> None:
    found = {(one.url, one.stamp): one for one in source.captures(ALL)}
    same = found["http://www.a.cz/same", "20100102030405"]
    assert (same.revisit, same.media_type, same.status, same.length) == (
        True,
        "text/html",
        200,
        None,
    )
    moved = found["http://www.a.cz/moved", "20080430204826"]
    assert (moved.status, moved.redirect, moved.leads) == (301, "http://b.cz/new", True)
    gif = found["http://a.cz/gif", "20080430204826"]
    assert (gif.media_type, gif.length, gif.surt) == ("image/gif", 6, "cz,a)/gif")
    assert gif.digest


@pytest.mark.parametrize(
    ("asked", "urls"),
    [
        (choice("www.a.cz"), 10),
        (choice("http://a.cz/g"), 2),
        (choice("a.cz/gzip"), 1),
        (choice("https://www.a.cz/*"), 10),
        (choice("b.cz", "c.cz/arc"), 2),
        (choice("d.cz"), 0),
        (choice(set_="domain:cz:a:www"), 7),
        (choice(set_="mime:image"), 1),
        (choice("a.cz/x", set_="domain:cz:a"), 2),
        (choice(until="20091231235959"), 9),
        (choice("www.a.cz", until="20091231235959"), 7),
        (choice(set_="domain:cz:a:www", until="20080101000000"), 0),
    ],
)
def test_choices(source: CaptureSource, asked: CaptureFilter, urls: int) -> None:
    assert len({one.identifier for one in source.captures(asked)}) == urls


def test_the_captures_of_one_url(source: CaptureSource) -> None:
    assert told(source.of_url("http://www.a.cz/", captures.LAST_SECOND)) == [
        ("http://www.a.cz/", "20080430204826"),
        ("http://www.a.cz/", "20100102030405"),
    ]
    assert len(told(source.of_url("http://www.a.cz/", "20091231235959"))) == 1
    assert told(source.of_url("http://www.a.cz/none", captures.LAST_SECOND)) == []


def body(source: CaptureSource, url: str, stamp: str = "2") -> tuple[bytes, dict[str, str]]:
    one = max(
        (o for o in source.captures(ALL) if o.url == url and o.status != 404 and o.stamp > stamp),
        key=lambda o: o.stamp,
    )
    with source.open(one.identifier) as found:
        data = b"".join(iter(lambda: found.stream.read(1 << 16), b""))
        assert found.size in (None, len(data))
        return data, dict(found.headers)


def test_archived_headers_come_with_the_bytes(source: CaptureSource) -> None:
    (first,) = (o for o in source.of_url("http://www.a.cz/", "20091231235959"))
    with source.open(first.identifier) as found:
        assert found.headers["last-modified"] == "Tue, 01 Jan 2008 10:00:00 GMT"
        assert found.headers["content-type"].startswith("text/html")
    assert body(source, "http://www.a.cz/")[0] == PAGE


def test_what_is_unknown_is_told(source: CaptureSource) -> None:
    with pytest.raises(captures.MissingError) as error, source.open("oai:b.cz:none"):
        pass
    assert error.value.code in {"unknown", "not-held"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("over_http", [False, True])
def test_other_bytes_are_never_taken_for_those_that_were_archived(
    tmp_path: Path, over_http: bool
) -> None:
    """test_command.py has one that is gone, and the bytes of all others."""
    shelf = fill(make_home(tmp_path / "home"), tmp_path / "crawl")
    with shelf.served() as base:
        where = base if over_http else str(shelf.store)
        with closing(opened(shelf, where)) as source:
            file = shelf.crawl / "two.arc"
            file.write_bytes(file.read_bytes().replace(b"out of an ARC", b"out of no ARC"))
            with pytest.raises(captures.MissingError) as error:
                body(source, "http://c.cz/arc")
            assert error.value.code == "damaged"
