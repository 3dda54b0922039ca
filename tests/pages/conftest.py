"""One archive, its server and one Chromium for all tests of pages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from builder.commands.demo import samples
from tests.e2e.conftest import Home, make_home
from tests.e2e.test_server import running
from tests.pages import archive
from tests.pages.crawler import Reached

HOME = quote(archive.HOME, safe=":/")
STARTS = (
    f"/captures?url={quote(archive.PICTURE, safe=':/')}&match=exact&from=201006&to=201006",
    "/records?kind=harvested",
    "/",
    "/?lang=cs",
    "/records",
    "/record/none",
    f"/captures?url={HOME}sbirky/&match=prefix",
    f"/captures?url={HOME}&match=exact",
    "/sets?under=none",
    f"/captures?url={HOME}&match=exact&from=2009&to=2009",
    "/sets?under=none&lang=cs",
    "/records?kind=capture&status=4xx&year=2009",
    "/sets?under=collection:museum&type=image/gif&lang=cs",
    "/captures?url=http://none.example.net/&match=exact",
    "/captures?url=:&match=exact",
    f"/captures?url={HOME}&match=exact&from=x",
    "/records?record=x",
    "/answer?verb=x",
    "/answer?verb=x&lang=cs",
    "/source?name=none",
    "/answer?verb=GetRecord&metadataPrefix=oai_dc&identifier=none",
    f"/captures?url={archive.FAR}&match=host",
    "/records?kind=fileset",
    "/records?kind=record",
    "/records?kind=template",
    "/records?kind=file",
    "/source?name=broken.warc.gz",
    "/source?name=broken.warc.gz&lang=cs",
    "/search",
    "/search?q=predmet+cislo",
    "/search?q=predm*&kind=capture&since=2009&lang=cs",
    "/search?q=nothing",
    "/search?q=%22",
    f"/search?q={archive.LONG[:20]}",
)
"""Pages from which all others can be reached, and those that no link leads to: errors."""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("pages")
    other = make_home(folder / "other")
    pages = {f"http://other.example.net/{n}": f"<title>Other {n}</title>".encode() for n in (1, 2)}
    assert other("ingest", samples.FILES / "books.mrc").code == 0
    other.publish_pages(folder / "other.warc.gz", pages)
    with other.served() as url:
        return archive.build(folder / "home", url)


@pytest.fixture(scope="session")
def site(home: Home) -> Iterator[Reached]:
    """Give what can be reached at `sheaf serve` over the archive."""
    with running(home) as (url, _, _):
        reached = Reached(url.removesuffix("/oai"))
        reached.walk(*STARTS)
        yield reached


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from tests.pages.chromium import CHROMIUM, sync_api  # not where that is not installed

    with sync_api.sync_playwright() as playwright:
        options = ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def reader(browser: Any, site: Reached) -> Any:
    from tests.pages.browser import Reader

    return Reader(browser, site.root)


@pytest.fixture(scope="session")
def axe() -> str:
    package = pytest.importorskip("axe_playwright_python")
    (script,) = Path(package.__file__).parent.glob("**/axe.min.js")
    return script.read_text("utf-8")
