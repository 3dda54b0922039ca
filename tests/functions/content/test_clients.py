"""The clients that people ask the Internet Archive's and pywb's servers with, asking /cdx.

Some have the address of the Internet Archive in them: what they send there comes here.
"""

from collections.abc import Iterator
from typing import Any

import cdx_toolkit
import cdx_toolkit.myrequests
import pytest
import requests
from requests.adapters import HTTPAdapter
from wayback import WaybackClient, WaybackSession
from waybackpy import WaybackMachineCDXServerAPI

from functions.content.handler import ContentApplication
from functions.content.search import CaptureSearch
from functions.snapshot import layout
from tests.builder.conftest import World
from tests.functions.content.fakes import FakeContents, listening
from tests.functions.content.test_cdx import taken

ARCHIVE = "https://web.archive.org"
DIGEST = "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A"
COUNT = 40


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An index with row groups of 8 rows, out of two publishes; give what it lies below."""
    world = World(tmp_path_factory.mktemp("clients") / "store")
    pages = [
        taken(
            f"http://a.org/{n:02}",
            f"2015-01-01T00:00:{n:02}Z",
            content_digest=DIGEST,
            content_mime_type="text/html",
            fetch_status=(200, 404)[n % 20 == 7],
            warc_record_type="revisit" if n == 3 else "response",
        )
        for n in range(COUNT)
    ]
    pages += [taken("http://a.org/undated", None, content_digest=DIGEST)]
    pages += [
        taken("http://b.org/", f"20{year:02}-01-01T00:00:00Z", content_digest=DIGEST)
        for year in range(5, 15)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "GROUP_ROWS", 8)
        for some in (pages[::3], [page for n, page in enumerate(pages) if n % 3]):
            world.ingest(some)  # type: ignore[arg-type]
            world.publish()
        repository = world.repository()
        application = ContentApplication(
            repository,
            FakeContents(),
            CaptureSearch(repository.catalogue, repository.files),
            world.configuration(SHEAF_CONTENT_SERVE="true", SHEAF_CONTENT_LINES="15"),
            world.clock,
        )
        with listening(application) as (host, port):
            yield f"http://{host}:{port}"
    world.close()


@pytest.fixture(autouse=True)
def led_here(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send what is meant for the Internet Archive here, and wait between no two requests."""
    send = HTTPAdapter.send

    def sent(self: HTTPAdapter, request: Any, *given: Any, **named: Any) -> requests.Response:
        request.url = request.url.replace(ARCHIVE, base, 1)
        return send(self, request, *given, **named)

    monkeypatch.setattr(HTTPAdapter, "send", sent)
    for entry in cdx_toolkit.myrequests.retry_info.values():
        monkeypatch.setitem(entry, "minimum_interval", 0)


URLS = [f"http://a.org/{n:02}" for n in range(COUNT)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [1000, 7])
def test_wayback_gets_every_capture(limit: int) -> None:
    with WaybackClient(WaybackSession(search_calls_per_second=0)) as client:
        found = [*client.search("a.org/*", limit=limit)]
        assert [one.original for one in found] == URLS
        # It asks for revisits to be resolved, unless it is told not to.
        assert {one.mimetype for one in found} == {"text/html"}
        plain = [*client.search("a.org/03", resolve_revisits=False)]
        assert [one.mimetype for one in plain] == ["warc/revisit"]
        errors = client.search("a.org/*", filter_field="statuscode:4..")
        assert [one.original for one in errors] == [URLS[7], URLS[27]]
        last = [*client.search("b.org", limit=-3, fast_latest=True)]
        assert [one.timestamp.year for one in last[:3]] == [2012, 2013, 2014]
        assert not [*client.search("nowhere.org")]


@pytest.mark.parametrize("paged", [False, True])
def test_waybackpy_gets_every_capture(paged: bool) -> None:
    def urls(url: str, **named: Any) -> list[str]:
        api = WaybackMachineCDXServerAPI(url, use_pagination=paged, **named)
        return [one.original for one in api.snapshots()]

    assert urls("a.org/*") == URLS
    assert urls("a.org/*", filters=["statuscode:4.."]) == [URLS[7], URLS[27]]
    if not paged:  # a page knows of no other
        assert urls("a.org/*", collapses=["timestamp:12", "urlkey"]) == URLS[:1]
    assert urls("nowhere.org") == []


def test_waybackpy_finds_the_nearest() -> None:
    api = WaybackMachineCDXServerAPI("b.org")
    # waybackpy takes what is left out from today, and not every month has its day.
    assert api.near(year=2009, month=2, day=1).timestamp == "20090101000000"
    assert (api.oldest().timestamp[:4], api.newest().timestamp[:4]) == ("2005", "2014")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("source", ["ia", "/cdx", "/cdx/search/cdx"])
def test_cdx_toolkit_gets_every_capture(base: str, source: str) -> None:
    fetcher = cdx_toolkit.CDXFetcher(source=source if source == "ia" else base + source)
    urls = [one["url"] for one in fetcher.iter("a.org/*", from_ts="2015")]
    assert urls == URLS
    # Between the two are pages on which there is none.
    errors = [one["url"] for one in fetcher.iter("a.org/*", filter="statuscode:404")]
    assert errors == [URLS[7], URLS[27]]
    assert [one["url"] for one in fetcher.iter("a.org/*", limit=11)] == URLS[:11]
    assert [one["timestamp"][:4] for one in fetcher.get("b.org", limit=2)] == ["2005", "2006"]
    assert not [*fetcher.iter("nowhere.org")]
    pages = fetcher.get_size_estimate("a.org/*", as_pages=True)
    assert COUNT / 16 <= pages <= COUNT / 2
