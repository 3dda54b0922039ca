"""Sheets: a page has as many records as fit, and few are read or made in vain."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from functions.oai.answer import RecordList
from functions.oai.application import Application
from functions.oai.render.render import Sheet, UnrenderedRecords
from functions.oai.render.template import RecordLoop
from functions.reading.repository import PublishedRecord
from tests.functions.oai.client import START, Page, configured, content, event, respond
from tests.functions.oai.validity import valid
from tests.functions.reading.memory import MemoryRepository, capture

LARGEST = 4_000_000
_NOW = datetime(2026, 3, 1, tzinfo=UTC)


def record(number: int, size: int) -> PublishedRecord:
    fields = {"title": "x" * size}
    return PublishedRecord(number + 1, f"oai:a.cz:{number}", "capture", _NOW, False, (), fields)


def written(part: RecordList) -> tuple[bytes, UnrenderedRecords]:
    return "".join(one.fields["title"] for one in part.records).encode(), UnrenderedRecords()


@given(
    sizes=st.lists(st.integers(0, 40) | st.sampled_from([0, 3000, 100_000]), max_size=60),
    largest=st.integers(1, 4000),
    parts=st.lists(st.integers(1, 20), min_size=1),
)
def test_a_page_ends_before_the_first_record_that_does_not_fit(
    sizes: list[int], largest: int, parts: list[int]
) -> None:
    records = [record(number, size) for number, size in enumerate(sizes)]
    sheet, taken = Sheet(written, largest), 0
    for number in range(len(records)):
        part = records[taken : taken + parts[number % len(parts)]]
        fitting = sheet.take(RecordList(part, None, None)) if part else 0
        taken += fitting
        if fitting < len(part):
            break
    fitting = max(n for n in range(len(sizes) + 1) if n == 1 or sum(sizes[:n]) <= largest)
    assert taken == fitting
    assert b"".join(sheet.finish()) == b"x" * sum(sizes[:taken])


class Counting(MemoryRepository):
    """Counts the records that are read of it."""

    read = 0

    def page(self, *arguments, **named):
        found = super().page(*arguments, **named)
        self.read += len(found)
        return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [300, 20_000])
def test_little_is_read_and_made_in_vain(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, made = Counting(), 0
    count = 20 + 3 * LARGEST // (size + 900)
    items = {
        f"oai:example.org:{n:05}": capture("http://a.cz/", title="x" * size) for n in range(count)
    }
    repository.publish(items, START - timedelta(hours=1))
    render = RecordLoop.render

    def counted(self, records, *arguments):
        nonlocal made
        made += len(records)
        return render(self, records, *arguments)

    monkeypatch.setattr(RecordLoop, "render", counted)
    asked = Application(repository, configured(pages_records=10_000), lambda: START)
    query, shown, pages = "verb=ListRecords&metadataPrefix=oai_dc", 0, 0
    while query:
        body = content(respond(asked, event(query)))
        assert len(body) <= LARGEST
        page = Page(valid(body) if query.endswith("oai_dc") else etree.fromstring(body))
        shown, pages = shown + len(page.identifiers), pages + 1
        assert len(body) > LARGEST * 0.95 - size or not page.next
        query = f"verb=ListRecords&resumptionToken={page.next}" if page.next else ""
    assert shown == count
    assert made <= 1.2 * count
    assert repository.read <= 1.3 * count + 2000 * pages
