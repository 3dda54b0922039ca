"""Lists of captures: their order, their days, and what is before and behind one of them."""

from collections.abc import Iterator

import pytest

from builder.store.folder import FolderStore
from functions.content.capture_row import FIELDS, CaptureRow
from functions.reading.duck_repository import DuckRepository
from functions.site import page as page_module
from functions.site.assembly import site_over
from functions.site.captures import capture_list
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
    for number, status in enumerate(("200 OK", "404 Not Found", "410 Gone", "200 OK")):
        date = f"20{10 + number}-05-03T10:00:00Z"
        yield Capture("http://b.cz/", date, page(f"B {number}"), status=status)
    for number in range(120):
        yield Capture(f"{ROOT}e/{number:03}", "2011-01-01T00:00:00Z", page(f"E {number}"))


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    home = make_home(tmp_path_factory.mktemp("captures") / "home")
    settings = home.config.read_text().replace("# include = []", 'include = ["errors"]')
    home.config.write_text(settings)
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
    lines = crawl.read(path).tree.xpath("//table[@class='captures stack']/tbody/tr")
    return [["".join(cell.itertext()).strip() for cell in row] for row in lines]


def read_all(crawl: Crawl, path: str) -> list[list[str]]:
    """Return them of a list and of the pages that follow."""
    seen = list[list[str]]()
    while path:
        seen += rows(crawl, path)
        path = next(iter(crawl.read(path).tree.xpath("//a[@rel='next']/@href")), "")
    return seen


def test_pages_come_before_what_they_need(crawl: Crawl) -> None:
    """Over all pages of the list, not on each."""
    seen = [row[1] for row in read_all(crawl, f"/captures?url={ROOT}&match=host")]
    assert len(seen) == len(_DAYS) + 120 + 1 + 2  # with the revisit of the last one
    assert seen[0] == f"{ROOT}d"
    assert seen[-2:] == [f"{ROOT}b.png", f"{ROOT}a.css"]


@pytest.mark.parametrize("few", [1_000, 50])
def test_a_reader_chooses_captures_by_status_type_and_year(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Where there are more captures than are read at once, a page of the list may be short."""
    monkeypatch.setattr(capture_list, "_FEW", few)
    host, url = f"/captures?url={ROOT}&match=host", "/captures?url=http://b.cz/&match=exact"
    for path, name in ((f"{host}&type=image/png", "b.png"), (f"{host}&type=text/css", "a.css")):
        assert [row[1] for row in read_all(crawl, path)] == [f"{ROOT}{name}"]
    assert (
        len(read_all(crawl, f"{host}&type=text/html&status=200")) == len(_DAYS) + 120 + 1
    )  # with the revisit
    assert len(read_all(crawl, f"{host}&year=2009")) == 5
    assert [row[0][:4] for row in read_all(crawl, f"{url}&status=4xx")] == ["2011", "2012"]
    assert [row[0][:4] for row in read_all(crawl, f"{url}&status=404")] == ["2011"]
    assert [row[0][:4] for row in read_all(crawl, f"{url}&status=200&year=2013")] == ["2013"]
    assert not read_all(crawl, f"{url}&status=404&from=2012")
    assert "has four digits" in crawl.read(f"{url}&year=20", 400).text


def test_the_most_frequent_types_are_those_to_choose_from(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "_TYPES", 1)
    tree = crawl.read(f"/captures?url={ROOT}&match=host").tree
    assert tree.xpath("//select[@id='type']/option/text()") == ["all", "text/html"]


def test_what_a_reader_chose_is_in_the_form_and_in_links(crawl: Crawl) -> None:
    path = "/captures?url=http://b.cz/&match=exact&status=4xx&type=text/html"
    tree = crawl.read(path).tree
    assert tree.xpath("//option[@selected]/text()")[1:] == ["4xx", "text/html"]
    assert tree.xpath("//select[@id='type']/option/text()") == ["all", "text/html"]
    assert tree.xpath("//input[@id='year']/@value") == [""]
    month = next(link for link in tree.xpath("//a/@href") if "from=201105" in link)
    assert [row[0][:7] for row in rows(crawl, month)] == ["2011-05"]
    tree = crawl.read(month).tree
    assert not tree.xpath("//input[@id='year']")  # a month has its year
    (day,) = tree.xpath("//table[@class='month']//a/@href")
    assert "status=4xx&type=text/html&from=20110503" in day


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
