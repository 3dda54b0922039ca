"""Dates: what a repository gives that does not keep to them, and what changes on the way."""

from pathlib import Path

import pytest

from builder.sources.harvest import window
from builder.sources.harvest.state import RunState
from tests.builder.sources.harvest.kept import expected
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import NOW, Answer, Call, Provider, items
from tests.builder.sources.harvest.test_defects import harvested

SINCE, UNTIL = "2026-11-20T09:00:00Z", "2026-11-20T18:00:00Z"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["ignores-dates", "tokens-lose-dates"])
def test_dates_that_were_ignored_do_not_count_as_harvested(name: str, tmp_path: Path) -> None:
    """What came is kept; what lies within the dates and did not come, comes with the next run."""
    some = items(600, 600)  # of four days
    with serving(some, name, page_size=5) as provider:

        def end(provider: Provider, call: Call, answer: Answer) -> Answer:
            """End the list after 20 pages, as if that were all."""
            last = call.is_list and provider.arguments(call).get("depth") == "19"
            start = answer.body.find(b"<resumptionToken") if last else -1
            body = answer.body if start < 0 else answer.body[:start]
            return answer if start < 0 else _ended(answer, body)

        provider.answers.append(end)
        code, told, found = harvested(provider, tmp_path, "--from", SINCE, "--until", UNTIL)
        inside = sum(SINCE <= row.datestamp <= UNTIL for row in found.rows)
        assert (code, told["status"]) == (1, "partial")
        assert len(found.rows) == told["records"]
        assert 0 < told["outside"] <= told["records"] - inside
        (note,) = (one for one in told["notes"] if "ignores the requested dates" in one)
        assert f"from {SINCE}, until {UNTIL}" in note
        assert f"{told['outside']:,} of {told['records']:,} records" in note
        provider.answers.remove(end)
        code, told, found = harvested(provider, tmp_path)
        assert (code, told["status"], told["notes"]) == (0, "complete", [])
        assert found.state == expected(provider.state())
    assert found.doubled == []


def _ended(answer: Answer, body: bytes) -> Answer:
    return Answer(answer.status, answer.headers, body + b"</ListRecords></OAI-PMH>")


def test_a_run_without_dates_goes_on_where_dates_are_ignored(tmp_path: Path) -> None:
    """A later run asks from the last one on; that is Sheaf's own doing, and no one's wish."""
    with serving(items(60, 7200), "ignores-dates") as provider:
        assert harvested(provider, tmp_path)[0] == 0
        provider.now = NOW.replace(day=26)
        provider.change(provider.items["oai:a.cz:3"], title="Another")
        before = len(provider.calls)
        code, told, found = harvested(provider, tmp_path)
        lists = [call for call in provider.calls[before:] if call.is_list]
        assert (code, told["status"], told["changed"], told["outside"]) == (0, "complete", 1, 0)
        assert told["notes"] == ["the repository ignores dates, so everything was requested"]
        assert ["from" in call.arguments for call in lists[:2]] == [True, False]
        assert len(lists) == 4
        assert found.state == expected(provider.state())


def test_a_repository_that_keeps_to_dates_is_not_suspected(tmp_path: Path) -> None:
    for name in ("gzip", "day", "day-stamps", "odd-stamps"):
        with serving(items(60, 7200), name) as provider:
            _, told, _ = harvested(provider, tmp_path / name, "--from", SINCE, "--until", UNTIL)
        assert (told["status"], told["outside"], told["notes"]) == ("complete", 0, []), name
        assert told["records"], name


@pytest.mark.parametrize(
    ("datestamp", "since", "until", "outside"),
    [
        ("2026-11-19T09:00:00Z", SINCE, None, False),  # a day before
        ("2026-11-19T08:59:59Z", SINCE, None, True),
        ("2026-11-19", SINCE, None, True),
        ("2026-11-20", SINCE, None, False),
        ("2026-11-21T18:00:00Z", None, UNTIL, False),
        ("2026-11-21T18:00:01Z", None, UNTIL, True),
        ("2026-11-21T23:59:59Z", None, "2026-11-20", False),
        ("2026-11-22T00:00:01Z", None, "2026-11-20", True),
        ("9999-12-31", None, "9999-12-31", False),
        ("0001-01-01", "0001-01-01", None, False),
    ],
)
def test_a_day_outside_is_tolerated(
    datestamp: str, since: str | None, until: str | None, outside: bool
) -> None:
    going = RunState(1, "", since, until, begin=since)
    assert window.is_outside(datestamp, going) == outside


def test_what_changes_while_a_list_is_walked_is_reported(tmp_path: Path) -> None:
    def changing(provider: Provider, call: Call, answer: Answer) -> Answer:
        if call.is_list and not provider.now.minute:
            provider.now = NOW.replace(minute=5)
            for number in (2, 3, 50):  # two that came already, and one that is still to come
                provider.change(provider.items[f"oai:a.cz:{number}"], title="Changed")
        return answer

    with serving(items(60)) as provider:
        provider.answers.append(changing)
        code, told, found = harvested(provider, tmp_path)
        assert (code, told["status"], told["later"], told["records"]) == (0, "complete", 3, 60)
        (note,) = told["notes"]
        assert note.startswith("3 records had datestamps after the list began")
        assert "2026-11-22T10:00:00Z" in note
        assert found.state == expected(provider.state())
        provider.now = NOW.replace(day=24)
        _, told, _ = harvested(provider, tmp_path)
        assert (told["later"], told["notes"]) == (0, [])
