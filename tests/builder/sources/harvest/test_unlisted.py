"""What a repository no longer lists, or lists without its metadata, is named and may end."""

from dataclasses import replace
from pathlib import Path

import pytest

from builder.sources.harvest import records
from builder.sources.harvest.run import VANISHED
from tests.builder.sources.harvest.kept import expected
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import NOW, Answer, Call, Page, Provider, items
from tests.builder.sources.harvest.test_defects import harvested

FULL, REMOVE = ("--full",), ("--full", "--remove-missing")


@pytest.mark.parametrize("form", ["parquet", "jsonl", "xml"])
def test_what_vanished_is_named_and_ended_on_request(form: str, tmp_path: Path) -> None:
    with serving(items(60)) as provider:
        harvested(provider, tmp_path, "--format", form)
        before = provider.state()
        names = [f"oai:a.cz:{number}" for number in (2, 3, 4)]
        gone = {name: provider.items.pop(name) for name in names}
        code, told, found = harvested(provider, tmp_path, *FULL)
        assert (code, told["unlisted"], told["removed"]) == (0, names, 0)
        assert told["notes"] == [
            "3 records of earlier runs no longer listed: --remove-missing deletes them"
        ]
        assert found.state == expected(before)
        code, told, found = harvested(provider, tmp_path, *REMOVE)
        assert (code, told["unlisted"], told["removed"]) == (0, names, 3)
        stamp = NOW.strftime(provider.form)
        assert {n: found.state[n] for n in names} == dict.fromkeys(names, (stamp, True, ""))
        assert [row.fault for row in found.rows[-3:]] == [VANISHED] * 3
        assert [row.sets for row in found.rows[-3:]] == [gone[name].sets for name in names]
        # What is ended is not named again, and what is listed again comes back as it was.
        assert harvested(provider, tmp_path, *REMOVE)[1]["unlisted"] == []
        provider.items.update(gone)
        _, told, found = harvested(provider, tmp_path, *REMOVE)
        assert (told["changed"], found.state) == (3, expected(before))
        assert found.doubled == []


def test_many_at_once_are_held_back_until_the_loss_is_accepted(tmp_path: Path) -> None:
    """Up to ten, or one in five, may vanish; all of them never."""
    for listed, missing, removed in ((60, 10, 10), (60, 13, 0), (90, 16, 16), (5, 5, 0)):
        home = tmp_path / f"{listed}-{missing}"
        with serving(items(listed)) as provider:
            harvested(provider, home)
            live = [one.identifier for one in provider.items.values() if not one.deleted]
            for name in live[:missing]:
                del provider.items[name]
            _, told, found = harvested(provider, home, *REMOVE)
            assert (told["unlisted"], told["removed"]) == (live[:missing], removed)
            held = "--accept-loss deletes them" in told["notes"][0]
            assert held == (not removed)
            if held:
                _, told, found = harvested(provider, home, *REMOVE, "--accept-loss")
                assert told["removed"] == missing
            assert sum(row.fault == VANISHED for row in found.rows) == missing


@pytest.mark.parametrize("lack", ["short", "estimate", "poison"])
def test_an_incomplete_list_removes_nothing(lack: str, tmp_path: Path) -> None:
    poison = frozenset({"oai:a.cz:27"})
    with serving(items(60), *(["bad-record-500"] if lack == "poison" else [])) as provider:
        harvested(provider, tmp_path)
        del provider.items["oai:a.cz:3"]

        def short(given: Provider, call: Call, page: Page) -> Page:
            if lack == "short":
                return replace(page, token=None) if page.depth == 1 else page
            return replace(page, size=page.size and page.size + 2)

        if lack == "poison":
            provider.poison = poison
            provider.change(provider.items["oai:a.cz:27"], title="Another")
        else:
            provider.pages.append(short)
        for _ in range(4):
            _, told, found = harvested(provider, tmp_path, *REMOVE)
            assert told["removed"] == 0
        assert VANISHED not in {row.fault for row in found.rows}


def test_a_record_that_loses_its_metadata_is_stored_and_named(tmp_path: Path) -> None:
    with serving(items(30)) as provider:
        harvested(provider, tmp_path)
        provider.now = NOW.replace(day=24)
        for number in (3, 4):
            provider.change(provider.items[f"oai:a.cz:{number}"])

        def restrict(given: Provider, call: Call, answer: Answer) -> Answer:
            head, _, rest = answer.body.partition(b"<identifier>oai:a.cz:3</identifier>")
            inner, end, after = rest.partition(b"</metadata>")
            if not end:
                return answer
            bare = inner[: inner.index(b"<metadata>") + 10]
            name = b"<identifier>oai:a.cz:3</identifier>"
            return replace(answer, body=head + name + bare + end + after)

        provider.answers.append(restrict)
        code, told, found = harvested(provider, tmp_path)
        assert (code, told["bare"], told["mended"]) == (0, ["oai:a.cz:3"], 0)
        row = next(row for row in reversed(found.rows) if row.identifier == "oai:a.cz:3")
        assert (row.deleted, row.fault, row.dc) == (False, records.NO_METADATA, {})
        provider.now = NOW.replace(day=26)
        assert harvested(provider, tmp_path)[1]["bare"] == []  # it is told once
