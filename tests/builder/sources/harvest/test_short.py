"""Lists that are shorter than they say, late, or empty for long: nothing of them is lost."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builder.sources.harvest import list_walk
from tests.builder.sources.harvest.kept import expected
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import NOW, Call, Fault, Page, Provider, items
from tests.builder.sources.harvest.test_defects import harvested


def _cut(page: Page) -> Page:
    return replace(page, token=None)


def _empty(page: Page) -> Page:
    return replace(page, items=(), token="")


def _refused(page: Page) -> Page:
    raise Fault("noRecordsMatch")


ENDS = {"no token": _cut, "an empty page": _empty, "noRecordsMatch": _refused}


def _ending(end: Callable[[Page], Page], depth: int = 2) -> Callable[..., Page]:
    def change(provider: Provider, call: Call, page: Page) -> Page:
        return end(page) if page.depth == depth else page

    return change


@pytest.mark.parametrize("name", ENDS)
def test_a_list_that_ends_early_is_partial_and_requested_again(name: str, tmp_path: Path) -> None:
    with serving(items(60), page_size=10) as provider:
        provider.pages.append(_ending(ENDS[name]))
        code, told, found = harvested(provider, tmp_path)
        assert (code, told["status"]) == (1, "partial")
        assert told["records"] == len(found.rows) == (30 if name == "no token" else 20)
        assert "of 60 records: the next run requests it again" in told["notes"][0]
        provider.pages.clear()
        calls = len(provider.calls)
        code, told, found = harvested(provider, tmp_path)
        assert (code, told["status"], told["records"]) == (0, "complete", 60)
        assert "from" not in next(c for c in provider.calls[calls:] if c.is_list).arguments
        assert found.state == expected(provider.state())
        assert found.doubled == []


@pytest.mark.parametrize("name", ["an empty page", "noRecordsMatch"])
def test_a_list_without_a_size_that_leads_to_nothing_is_begun_again(
    name: str, tmp_path: Path
) -> None:
    """Datestamps show where; what comes behind is had, and the end is seen by nothing new."""
    with serving(items(60), "no-size", page_size=10) as provider:
        provider.pages.append(_ending(ENDS[name]))
        code, told, found = harvested(provider, tmp_path)
        assert (code, told["status"], told["records"]) == (0, "complete", 60)
        assert found.state == expected(provider.state())


def test_a_size_that_is_wrong_for_good_is_believed_in_two_walks_alone(tmp_path: Path) -> None:
    """Three walks end short and two of them agree; later lists may lack as large a share."""
    with serving(items(60), page_size=10) as provider:
        provider.pages.append(
            lambda given, call, page: replace(page, size=page.size and page.size * 21 // 20 + 1)
        )
        for code, status in ((1, "partial"), (1, "partial"), (0, "complete")):
            done, told, found = harvested(provider, tmp_path)
            assert (done, told["status"], told["records"]) == (code, status, 60)
            assert len(found.rows) == 60
        assert "in 3 walks that agree" in told["notes"][0]
        provider.now = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
        for number in range(30):
            provider.change(provider.items[f"oai:a.cz:{number}"], title="Another")
        code, told, _ = harvested(provider, tmp_path)
        assert (code, told["status"], told["changed"]) == (0, "complete", 30)
        provider.pages.append(_ending(_cut, 1))  # ten of thirty are more than that share
        for number in range(30):
            provider.change(provider.items[f"oai:a.cz:{number}"], title="A third")
        assert harvested(provider, tmp_path)[:1] == (1,)


def test_walks_that_end_elsewhere_each_time_do_not_agree(tmp_path: Path) -> None:
    """Each one brings what the one before should have listed, so the size is still believed."""
    with serving(items(60), page_size=10) as provider:
        for depth, code in ((1, 1), (2, 1), (3, 1), (4, 1), (4, 0)):
            provider.pages[:] = [_ending(_cut, depth)]
            assert harvested(provider, tmp_path)[0] == code


@pytest.mark.parametrize("size", ["", "no-size"])
def test_many_pages_of_nothing_are_no_loop_while_records_are_missing(
    size: str, tmp_path: Path
) -> None:
    with serving(items(30), *filter(None, [size]), page_size=10) as provider:

        def filtered(given: Provider, call: Call, page: Page) -> Page:
            place = int(
                call.arguments.get("resumptionToken", "empty=0").partition("empty=")[2] or 70
            )
            if place >= 70:
                return page
            token = f"{given.token({'metadataPrefix': 'oai_dc'}, '0', 0)}&empty={place + 1}"
            return replace(page, items=(), token=token)

        provider.pages.append(filtered)
        code, told, found = harvested(provider, tmp_path)
        assert (code, told["status"], told["records"]) == (0, "complete", 30)
        assert told["notes"] == []
        assert found.state == expected(provider.state())


def test_pages_of_nothing_without_an_end_and_without_a_size_come_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_walk, "_PATIENCE", 80)
    with serving(items(30), "no-size", "empty-pages") as provider:
        code, told, found = harvested(provider, tmp_path)
        assert len(provider.calls) < 240
        assert (code, told["status"]) == (0, "complete")
        assert found.state == expected(provider.state())


def _late(provider: Provider, hours: int, name: str) -> None:
    """Add an item whose datestamp is so many hours old."""
    item = provider.items["oai:a.cz:0"]
    stamp = provider.now - timedelta(hours=hours)
    provider.items[name] = replace(item, identifier=name, stamp=stamp)


@pytest.mark.parametrize("form", ["", "day"])
def test_records_that_appear_after_their_datestamps_are_not_missed(
    form: str, tmp_path: Path
) -> None:
    """The first run of a day looks back for two days, and further if that was hardly enough."""
    with serving(items(30), *filter(None, [form])) as provider:
        provider.now = datetime.now(UTC).replace(microsecond=0)
        harvested(provider, tmp_path)
        _late(provider, 10 if not form else 40, "oai:a.cz:late")
        _, told, found = harvested(provider, tmp_path)
        assert "oai:a.cz:late" in found.state
        # The next run is of the same day, and looks back for twice as long as was measured.
        _late(provider, 15 if not form else 40, "oai:a.cz:again")
        _, told, found = harvested(provider, tmp_path)
        assert "oai:a.cz:again" in found.state
        # All of a week come at once: what is seen of them shows how far back to look.
        for hours in range(20, 160, 20):
            _late(provider, hours, f"oai:a.cz:week{hours}")
        _, told, found = harvested(provider, tmp_path)
        assert found.state == expected(provider.state())
        assert "hours after their datestamps, so later runs overlap by" in told["notes"][0]


def test_records_that_change_without_a_new_datestamp_are_not_late(tmp_path: Path) -> None:
    """An overlap that grows by them would grow for ever."""
    with serving(items(30, 600)) as provider:
        provider.now = datetime.now(UTC).replace(microsecond=0)
        for number in range(30):
            provider.change(provider.items[f"oai:a.cz:{number}"], stamp=provider.now)
        provider.now += timedelta(seconds=60)
        for title in ("T", "U", "V"):
            for one in list(provider.items.values()):
                provider.items[one.identifier] = replace(one, title=title)
            code, told, found = harvested(provider, tmp_path)
            assert (code, told["notes"]) == (0, [])
        lists = [call.arguments for call in provider.calls if call.is_list]
        assert len({given.get("from") for given in lists}) <= 3
        assert found.state == expected(provider.state())


def test_a_responsedate_that_is_set_back_is_no_wrong_clock(tmp_path: Path) -> None:
    """Repositories of Sheaf set theirs back by some seconds, so that no change is missed."""
    with serving(items(30)) as provider:
        provider.change(provider.items["oai:a.cz:3"], title="New", stamp=NOW + timedelta(seconds=5))
        code, told, _ = harvested(provider, tmp_path)
        assert (code, told["later"], told["notes"]) == (0, 0, [])
        provider.change(provider.items["oai:a.cz:4"], title="New", stamp=NOW + timedelta(hours=1))
        assert harvested(provider, tmp_path)[1]["later"] == 1


def test_items_that_are_listed_one_by_one_count_as_listed(tmp_path: Path) -> None:
    """Where pages fail, headers of known versions need no request, and are no loss."""
    poison = frozenset({"oai:a.cz:27"})
    with serving(items(60), "bad-record-500") as provider:
        assert harvested(provider, tmp_path)[0] == 0
        provider.poison = poison
        code, told, _ = harvested(provider, tmp_path, "--full")
        assert (code, told["status"], told["same"]) == (0, "complete", 60)
        assert "no longer listed" not in " ".join(told["notes"])


def test_a_list_of_everything_is_not_requested_again_for_late_records(tmp_path: Path) -> None:
    with serving(items(30), "no-dates") as provider:
        provider.now = datetime.now(UTC).replace(microsecond=0)
        harvested(provider, tmp_path)
        _late(provider, 40, "oai:a.cz:late")
        calls = len(provider.calls)
        _, told, _ = harvested(provider, tmp_path)
        tokens = ["resumptionToken" in c.arguments for c in provider.calls[calls:] if c.is_list]
        assert (told["new"], tokens.count(True)) == (1, 1)
