"""Lists of captures: their order, their days, and what is before and behind one of them."""

from collections.abc import Iterator

import pytest

from builder.store.folder import FolderStore
from functions.content.capture_row import FIELDS, CaptureRow
from functions.reading.duck_repository import DuckRepository
from functions.site.assembly import site_over
from functions.site.captures.content_change import list_days
from tests.e2e.conftest import CLOCK, make_home
from tests.functions.oai.client import Client, Clock
from tests.functions.site.crawl import Crawl
from tests.pages.archive import Capture, draw, page, write

ROOT = "http://a.cz/"
_DAYS = ("2009-02-28", "2009-03-01", "2009-03-01", "2010-01-31")


def captures() -> Iterator[Capture]:
    """Yield a style sheet, whose URL comes first, an image, and pages."""
    yield Capture(f"{ROOT}a.css", "2009-01-01T00:00:00Z", b"a {}", "text/css")
    yield Capture(f"{ROOT}b.png", "2009-01-01T00:00:00Z", draw(40, 20), "image/png")
    for number, day in enumerate(_DAYS):
        text = page("D", "new" if day[:4] == "2010" else "old")
        yield Capture(f"{ROOT}d", f"{day}T0{number}:00:00Z", text)
    for number in range(120):
        yield Capture(f"{ROOT}e/{number:03}", "2011-01-01T00:00:00Z", page(f"E {number}"))


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    home = make_home(tmp_path_factory.mktemp("captures") / "home")
    for command in (
        ("ingest", "--jobs", "1", write(home.folder / "a.warc.gz", captures())),
        ("publish",),
    ):
        done = home(*command)
        assert done.code == 0, done.err
    repository = DuckRepository(FolderStore(home.folder / "store"))
    clock = Clock()
    clock.now = CLOCK.now()
    yield Crawl(Client(repository, clock, pages=site_over(repository), content_serve=True))
    repository.close()


def rows(crawl: Crawl, path: str) -> list[list[str]]:
    """Return the texts of the cells of a list of captures."""
    table = crawl.read(path).tree.find(".//table[@class='captures stack']/tbody")
    return [["".join(cell.itertext()).strip() for cell in row] for row in table]


def test_pages_come_before_what_they_need(crawl: Crawl) -> None:
    """Over all pages of the list, not on each."""
    path, seen = f"/captures?url={ROOT}&match=host", list[str]()
    while path:
        seen += [row[1] for row in rows(crawl, path)]
        following = crawl.read(path).tree.xpath("//a[@rel='next']/@href")
        path = following[0] if following else ""
    assert len(seen) == len(_DAYS) + 120 + 1 + 2  # with the revisit of the last one
    assert seen[0] == f"{ROOT}d"
    assert seen[-2:] == [f"{ROOT}b.png", f"{ROOT}a.css"]


def test_the_days_of_a_year_are_marked_and_lead_to_their_captures(crawl: Crawl) -> None:
    visit = crawl.read(f"/captures?url={ROOT}d&match=exact&from=2009&to=2009")
    assert visit.tree.xpath("//table[@class='month']/caption/text()") == [
        "February 2009",
        "March 2009",
    ]
    labels = visit.tree.xpath("//table[@class='month']//a/@aria-label")
    assert labels == ["28 February 2009: 1, first", "1 March 2009: 2"]
    (link,) = visit.tree.xpath("//a[starts-with(@aria-label, '1 March')]/@href")
    assert [row[0][:10] for row in rows(crawl, link)] == ["2009-03-01"] * 2
    labels = crawl.read(link).tree.xpath("//table[@class='month']//a/@aria-label")
    assert labels == ["1 March 2009: 2"]  # of the day's month
    visit = crawl.read(f"/captures?url={ROOT}d&match=exact")
    assert "Choose a year or a month" in visit.text
    assert f"/captures?url={ROOT}d&match=exact&from=2010&to=2010" in visit.tree.xpath("//a/@href")


def test_a_capture_leads_to_those_before_and_behind_it(crawl: Crawl) -> None:
    path = crawl.read(f"/captures?url={ROOT}d&match=exact").tree.xpath("//table//td/a/@href")[0]
    dates = []
    while path:
        tree = crawl.read(path).tree
        dates.append(tree.xpath("string(//p[@class='when'])"))
        following = tree.xpath("//a[@rel='next']/@href")
        if following:
            assert crawl.read(following[0]).tree.xpath("//a[@rel='prev']/@href") == [path]
        path = following[0] if following else ""
    assert [date[:-10].strip(", ") for date in dates] == [
        "28 February 2009",
        "1 March 2009",
        "1 March 2009",
        "31 January 2010",
    ]


def test_an_image_is_in_the_list(crawl: Crawl) -> None:
    (image,) = crawl.read(f"/captures?url={ROOT}b.png&match=exact").tree.xpath("//img")
    assert image.get("src") == f"/web/20090101000000im_/{ROOT}b.png"


def test_a_capture_without_a_day_is_on_no_day() -> None:
    def capture(date: str | None) -> CaptureRow:
        fields = dict.fromkeys(FIELDS) | {"url": ROOT, "fetch_date": date}
        return CaptureRow.of("oai:x", 1, (), fields)

    dates = (None, "2007", "2007-11", "2007-11-30", "2007-11-30T00:00:00Z")
    pairs = [(capture(date), "first") for date in dates]
    assert list_days(pairs, "2007") == {"2007-11-30": ["first"] * 2}
    assert not list_days(pairs, "2008")
