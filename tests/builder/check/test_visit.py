"""A visit ends, whatever is on the other side; what it did not see is not checked."""

import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.check.asker import SavedAnswers
from builder.check.checks import NOT_CHECKED, CheckCard, load_checks
from builder.check.visit import Visit, VisitOptions, visit
from builder.errors import UsageError
from builder.http.limits import Limits
from tests.builder.check.visiting import failures, visiting
from tests.builder.sources.harvest.element import Item
from tests.builder.sources.harvest.listening import listening, serving
from tests.builder.sources.harvest.provider import NOW, Answer, Call, Fault, Page, Provider, items
from tests.e2e.conftest import sheaf

BEGIN = NOW - timedelta(days=200)


def outcomes(card: CheckCard) -> Mapping[str, dict[str, Any]]:
    return {row["number"]: row for row in card.describe(load_checks(), "-")}


class _Made(dict[str, Item]):
    """Items that are made when they are asked for, one for each second."""

    def get(self, name: str, default: Any = None) -> Any:
        number = name.removeprefix("oai:a.cz:")
        return made(int(number)) if number.isdigit() else default


def made(number: int) -> Item:
    return Item(f"oai:a.cz:{number}", BEGIN + timedelta(seconds=number), f"Title {number}")


class _LargeProvider(Provider):
    count = 0

    def earliest(self) -> Any:
        return BEGIN

    def plain_page(self, call: Call) -> Page:
        given = self.arguments(call)
        since = self.instant(given.get("from", ""), upper=False) or BEGIN
        until = self.instant(given.get("until", ""), upper=True) or NOW
        first = max(0, int((since - BEGIN).total_seconds()))
        last = min(self.count, int((until - BEGIN).total_seconds()) + 1)
        start, depth = int(given.get("after", first)), int(given.get("depth", 0))
        end = min(start + self.page_size, last)
        if end <= start:
            raise Fault("noRecordsMatch")
        token = self.token(given, str(end), depth + 1) if end < last else "" if depth else None
        rows = tuple(map(made, range(start, end)))
        return Page(rows, token, start - first, last - first, depth, start)


def _no_sets(provider: Provider, call: Call) -> None:
    if call.verb == "ListSets" or "set" in call.arguments:
        raise Fault("noSetHierarchy", "none")


def visited(count: int) -> tuple[CheckCard, Visit, float]:
    provider = _LargeProvider(_Made(), page_size=100, before=[_no_sets])
    provider.count = count
    with listening(provider):
        begun = time.monotonic()
        card, result = visiting(provider.url)
    return card, result, time.monotonic() - begun


def test_ten_million_records_are_checked_by_sample() -> None:
    card, small, seconds = visited(1000)
    assert failures(card) == {}
    assert small.walk is not None
    assert (small.walk.count, small.walk.ended) == (1000, True)
    card, large, seconds_of_large = visited(10_000_000)
    assert failures(card) == {}
    assert large.walk is not None
    assert (large.walk.ended, large.walk.size) == (False, 10_000_000)
    assert len(large.exchanges) < 1.5 * len(small.exchanges)
    assert seconds_of_large < 3 * seconds + 1
    states = outcomes(card)
    for number in ("L02", "L07", "L12"):
        assert states[number]["state"] == NOT_CHECKED
        assert "pages were walked" in states[number]["reason"]
    # Windows over the whole time bring records from there, too.
    assert max(record.datestamp for record in large.sample) > f"{BEGIN + timedelta(days=90):%F}"


@pytest.mark.parametrize(
    ("pause", "length", "check"),
    [(0.4, 0, "H10"), (0, 300_000, "H13"), (0, 11_000_000, "H14")],
    ids=["slow", "huge", "large"],
)
def test_slow_and_huge_answers_end_with_a_finding(pause: float, length: int, check: str) -> None:
    most = 200_000 if check == "H13" else 64_000_000
    limits = Limits(connect=5, first_byte=0.2 if pause else 20, total=20, rate=0, bytes=most)

    def spoil(provider: Provider, call: Call, answer: Answer) -> Answer:
        if call.verb != "ListRecords":
            return answer
        body = answer.body.replace(b"</OAI-PMH>", b" " * length + b"</OAI-PMH>")
        return Answer(200, answer.headers, body, pause=pause)

    with serving(items(10)) as provider:
        provider.answers.append(spoil)
        card, result = visiting(provider.url, limits=limits)
    assert {*failures(card)} == {check}
    assert result.walk is not None
    assert result.walk.ended == (check == "H14")
    assert (outcomes(card)["L01"]["state"] == NOT_CHECKED) == (check != "H14")


@pytest.mark.parametrize(("seconds", "requests"), [(0.1, 600), (60, 9)])
def test_a_budget_ends_a_visit(seconds: float, requests: int) -> None:
    def wait(provider: Provider, call: Call, answer: Answer) -> Answer:
        return Answer(200, answer.headers, answer.body, pause=0.03)

    with serving(items(2000)) as provider:
        provider.answers.append(wait)
        card, result = visiting(provider.url, seconds=seconds, requests=requests)
    assert failures(card) == {}
    assert len(result.exchanges) <= 9
    state = outcomes(card)["A11"]
    assert (state["state"], state["reason"]) == (NOT_CHECKED, "the visit's time was used up")


def test_saved_answers_are_checked_as_far_as_they_go(tmp_path: Path) -> None:
    saved: list[bytes] = []

    def save(provider: Provider, call: Call, answer: Answer) -> Answer:
        if call.verb in ("Identify", "ListRecords", "ListSets"):
            saved.append(answer.body.replace(b'cursor="2', b'cursor="1'))
        return answer

    with serving(items(70)) as provider:
        provider.answers.append(save)
        visiting(provider.url)
    for number, body in enumerate(saved):
        (tmp_path / f"{number:03}.xml").write_bytes(body)
    card = CheckCard()
    result = visit(SavedAnswers(tmp_path), card, lambda: NOW, VisitOptions())
    assert {*failures(card)} == {"L08"}
    assert result.walk is not None
    assert (result.walk.count, result.walk.ended) == (70, True)
    states = outcomes(card)
    assert states["L02"]["state"] == "passed"
    assert {states[number]["state"] for number in ("A01", "H07", "L09", "L13")} == {NOT_CHECKED}
    done = sheaf("check", tmp_path, "--json")
    assert done.code == 1, done.err
    assert done.json["summary"]["specification"] >= 1


def test_a_folder_without_answers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing")
    with pytest.raises(UsageError, match="no saved answers"):
        SavedAnswers(tmp_path)
    assert sheaf("check", tmp_path).code == 2


def test_exit_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHEAF_HTTP_HOST_SECONDS", "0")
    assert sheaf("check", "http://127.0.0.1:1/oai").code == 2
    assert sheaf("check", "ftp://a.cz/oai").code == 2
    with serving(items(3), "html-type") as provider:
        assert sheaf("check", provider.url, "--sample", "2").code == 1
        done = sheaf("check", provider.url, "--json", "--header", "X-Key: secret")
    assert {key for key in provider.keys if key} == {"secret"}
    assert "secret" not in done.out
