"""The page of checks shows the newest ones, and since when every object was read."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from functions.site.site import make_site
from functions.snapshot.errors import StoreError
from functions.snapshot.fixity import CheckReport
from tests.functions.oai.client import START, Client, Clock
from tests.functions.oai.conftest import ten_captures
from tests.functions.site.crawl import Crawl


def crawl(reports: Sequence[CheckReport]) -> Crawl:
    return Crawl(Client(ten_captures(), Clock(), partial(make_site, checks=lambda: reports)))


def check(day: int, part: str, damage: int = 0, percent: float | None = None) -> CheckReport:
    time = START + timedelta(days=day)
    return CheckReport(time, time, 1, part, percent, 1234, 617, damage=damage)


def test_checks_are_listed_the_newest_first() -> None:
    some = [check(1, "1/2"), check(2, "2/2", damage=3), check(3, "", percent=2.5)]
    text = crawl(some).read("/checks").text
    assert "Every object was read and compared with its digest since 2 March 2026" in text
    damages = [("2.5 %", 0), ("2/2", 3), ("1/2", 0)]
    lines = [f"{part} 617 1,234 {damage}" for part, damage in damages]
    places = [text.index(line) for line in lines]
    assert places == sorted(places)
    rows = crawl(some).read_table("/checks", "checks")
    assert [row["damage"] for row in rows] == [damage for _, damage in damages]
    assert rows[1]["ended"] == "2026-03-03T12:00:00Z"
    assert "Kontroly dat" in crawl(some).read("/checks?lang=cs").text


def test_a_part_alone_promises_nothing() -> None:
    assert "Every object was read" not in crawl([check(1, "1/2")]).read("/checks").text


def test_without_reports_or_the_right_to_read_them_the_page_says_so() -> None:
    def fail() -> Sequence[CheckReport]:
        raise StoreError("403")

    whole = crawl([]).read("/checks").text
    assert "No check is recorded." in whole
    assert (
        Crawl(Client(ten_captures(), Clock(), partial(make_site, checks=fail))).read("/checks").text
        == whole
    )
