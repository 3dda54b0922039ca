"""Nights of an aggregator of twenty repositories, seven of which misbehave.

Each night records are added, changed and deleted. Repositories move and fail for a while.
"""

import argparse
import random
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from sickle import Sickle

from builder.commands.demo import samples
from builder.commands.make import publish
from builder.commands.make.harvest import ListOptions, harvest_lists
from builder.sources.harvest.night import Deadline
from builder.sources.harvest.run import HarvestJob, HarvestResult
from builder.sources.harvest.window import HarvestDates
from builder.store.context import Context, from_environment
from tests.builder.sources.harvest.defects import DEFECTS, defective
from tests.builder.sources.harvest.element import Item, metadata
from tests.builder.sources.harvest.listening import listening, serving
from tests.builder.sources.harvest.provider import Answer, Call, Provider, items
from tests.builder.sources.harvest.test_aggregate import state
from tests.clock import Clock
from tests.e2e.conftest import Home, Result, sheaf
from tests.functions.oai.validity import OAI
from tests.secret_urls import SECRET

DAY = timedelta(days=1)
XSI = "http://www.w3.org/2001/XMLSchema-instance"
SAMPLES = Path(samples.__file__).parent / "files" / "RePEc"
HEALTHY = (
    *("day", "no-size", "single-use-tokens", "extra-empty-page", "padded-token", "errors-400"),
    *("gzip", "bom", "503", "moves", "vanishes", "outage", "formats"),
)
"""What is true of each repository in order: a defect that is mended, or what happens to it."""
Change = Callable[[Provider, Call, Answer], Answer]


def to_c14n(element: Any) -> bytes:
    return bytes(etree.tostring(element, method="c14n", exclusive=True))


def _with_tokens(change: Change) -> Change:
    return lambda p, c, a: change(p, c, a) if "resumptionToken" in c.arguments else a


def _refuse_token(provider: Provider, call: Call, answer: Answer) -> Answer:
    start, end = answer.body.index(b"</request>") + 10, answer.body.index(b"</OAI-PMH>")
    error = b'<error code="badResumptionToken">no such token</error>'
    return replace(answer, body=answer.body[:start] + error + answer.body[end:])


def _misdate(provider: Provider, call: Call, answer: Answer) -> Answer:
    """Give each record twice, and no valid datestamp."""
    start, end = answer.body.find(b"<record>"), answer.body.rfind(b"</record>") + 9
    if start < 0:
        return answer
    rows = answer.body[start:end]
    body = answer.body[:start] + rows + rows + answer.body[end:]
    return replace(answer, body=body.replace(b"<datestamp>2", b"<datestamp>the year 2"))


def _say_nothing(provider: Provider, call: Call, answer: Answer) -> Answer:
    return replace(answer, silent=True)


MISBEHAVING: Mapping[str, tuple[Change, str]] = {
    "errors": (_with_tokens(lambda p, c, a: replace(a, status=500, body=b"")), "HTTP status 500"),
    "tokens": (_with_tokens(_refuse_token), "badResumptionToken: no such token"),
    "unavailable": (lambda p, c, a: Answer(503, {"Retry-After": "0"}, b""), "HTTP status 503"),
    "html": (
        lambda p, c, a: Answer(200, {}, b"<html><p>We move</html>"),
        "is not XML: it is a page of HTML",
    ),
    "hangs": (lambda p, c, a: replace(a, pause=p.hang, silent=True), "no-answer"),
    "stamps": (_misdate, "records mended"),
    "xml": (lambda p, c, a: DEFECTS["bad-record-cut"].answer(p, c, a), "could not be harvested"),  # type: ignore[misc]
}
"""How each misbehaves, and what is said of it."""


@dataclass
class Aggregator:
    """A home, and the repositories that it harvests, each at an address of its own."""

    home: Home
    stack: ExitStack
    providers: dict[str, Provider] = field(default_factory=dict)
    urls: dict[str, list[str]] = field(default_factory=dict)
    gone: dict[str, Item] = field(default_factory=dict)
    clock: Clock = field(default_factory=lambda: Clock(-60 * DAY))
    rng: random.Random = field(default_factory=lambda: random.Random(44))
    added: int = 0

    def __call__(self, command: str, *arguments: str) -> Result:
        def surround(given: Any) -> Context:
            environment = from_environment(given).environment
            return Context(given, environment, self.clock.now, self.clock.sleep)

        config = ("--config", self.home.config)
        return sheaf(command, *config, *arguments, surround=surround)

    def add(self, name: str, *defects: str) -> None:
        now = self.clock.now().replace(microsecond=0)
        items = [self._item(name, now - timedelta(hours=2 + n)) for n in range(7)]
        provider = defective({i.identifier: i for i in items}, *defects, page_size=3, hang=30.0)
        self.providers[name] = provider
        self.move(name)

    def move(self, name: str) -> None:
        """Serve a repository at a new address, and no longer at the one before."""
        number = 2 + sum(map(len, self.urls.values()))
        before = self.providers[name]
        provider = replace(before, answers=[*before.answers])
        before.answers[:] = [_say_nothing]
        self.providers[name] = self.stack.enter_context(listening(provider, f"127.0.0.{number}"))
        self.urls.setdefault(name, []).insert(0, provider.url)

    def _item(self, name: str, stamp: datetime) -> Item:
        self.added += 1
        return Item(f"oai:{name}.cz:{self.added}", stamp, f"T{self.added}", ("a",))

    def configure(self) -> None:
        text = self.home.config.read_text().partition("\n[[repositories]]")[0]
        more = {"vanishes": "full = true\n", "formats": 'prefixes = ["oai_dc", "marc21"]\n'}
        for name, (url, *former) in self.urls.items():
            text += f'\n[[repositories]]\nname = "{name}"\nurl = "{url}"\nformer = {former}\n'
            text += "check_days = 0\n"
            text += more.get(name, "")
        self.home.config.write_text(text)

    def pass_day(self) -> None:
        """Change, add and delete something in each repository."""
        self.clock.ahead += DAY
        for name, provider in self.providers.items():
            provider.now = self.clock.now().replace(microsecond=0)
            live = [i for i in provider.items.values() if not i.deleted]
            changed, deleted = self.rng.sample(live, 2)
            provider.change(changed, title=f"{changed.title}x")
            if self.rng.random() < 0.4:
                if name == "vanishes":
                    self.gone[deleted.identifier] = provider.items.pop(deleted.identifier)
                else:
                    provider.delete(deleted.identifier)
            new = self._item(name, provider.now)
            provider.items[new.identifier] = new

    def expected(self, name: str) -> dict[str, tuple[bool, str]]:
        items = dict(self.providers[name].items)
        if name == "vanishes":
            items |= {n: replace(i, deleted=True) for n, i in self.gone.items()}
        return {n: (i.deleted, "" if i.deleted else i.title) for n, i in items.items()}

    def compare_served(self, names: Iterable[str]) -> None:
        """Compare what clients see with all metadata and sets of these repositories."""
        seen: dict[str, dict[str, object]] = {name: {} for name in self.providers}
        with self.home.served() as base:
            for record in Sickle(base).ListRecords(metadataPrefix="oai_dc"):
                head, element = record.header, record.xml.find(f"{OAI}metadata/*")
                name = head.identifier.split(":")[1].removesuffix(".cz")
                has_set = any(spec.endswith(":a") for spec in head.setSpecs)
                seen[name][head.identifier] = head.deleted or (has_set, to_c14n(element))
        for name in names:
            own, titles = seen[name], self.expected(name)
            assert own.keys() == titles.keys()
            for identifier, (is_deleted, title) in titles.items():
                item = Item(identifier, self.clock.now(), title)
                text = f'<x xmlns:xsi="{XSI}">{metadata(item, "oai_dc")}</x>'
                wanted = is_deleted or (True, to_c14n(etree.fromstring(text)[0]))
                assert own[identifier] == wanted, (name, identifier)

    def published(self, name: str) -> dict[str, tuple[bool, str]]:
        rows = state(self.home).items()
        return {
            n: (row[1], "" if row[1] else row[2]) for n, row in rows if n.startswith(f"oai:{name}.")
        }


@pytest.fixture
def aggregator(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Aggregator]:
    monkeypatch.setenv("SHEAF_HTTP_TRIES", "2")
    with ExitStack() as stack:
        yield Aggregator(home, stack)


@pytest.mark.parametrize("nights", [3, pytest.param(30, marks=pytest.mark.thorough)])
def test_nights_of_repositories_of_which_a_third_misbehaves(
    aggregator: Aggregator, nights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*HEALTHY, *MISBEHAVING):
        aggregator.add(name, *({name} & DEFECTS.keys()))
    before: dict[str, Any] = {}
    for night in range(nights):
        aggregator.pass_day()
        hangs = night == nights - 1 or (nights > 4 and night == nights // 2)  # it costs seconds
        monkeypatch.setenv("SHEAF_HTTP_FIRST_BYTE_SECONDS", "1" if hangs else "60")
        for number, (name, (change, _)) in enumerate(MISBEHAVING.items()):
            # Some were never in order.
            is_bad = hangs if name == "hangs" else number % 2 == 0 or night > 0
            provider = aggregator.providers[name]
            provider.answers[:] = [change] * is_bad
            provider.poison = frozenset(list(provider.items)[1:2])
            if is_bad and name not in before:
                before[name] = aggregator.published(name) if night else {}
        is_away = nights // 3 <= night <= nights // 2
        aggregator.providers["outage"].answers[:] = [_say_nothing] * is_away
        if night == nights // 2:
            aggregator.move("moves")
        aggregator.configure()
        result = aggregator("update", "--json")
        assert result.code == 1, result.err
        rows = {row["repository"]: row for row in result.json["rows"]}
        assert (rows["outage"]["state"] == "failed") == is_away
    for name in HEALTHY:
        assert (rows[name]["state"], rows[name]["failing"]) == ("whole", ""), rows[name]
        assert aggregator.published(name) == aggregator.expected(name), name
    aggregator.compare_served(HEALTHY)
    status = aggregator("status")
    for name, (_, reason) in MISBEHAVING.items():
        row, items, own = rows[name], aggregator.published(name), aggregator.expected(name)
        assert reason in row["reason"], row
        # What could not be read stays, and only what its repository says is deleted.
        assert items.keys() >= before[name].keys()
        assert all(own[n][0] for n, (is_deleted, _) in items.items() if is_deleted)
        if name == "stamps":  # all could be mended
            assert (row["state"], items) == ("whole", own)
            continue
        assert row["state"] in ("partial", "failed")
        lag = "never" if row["lag"] is None else r"\d+ (min|h|d)"
        assert re.search(rf"^{name} +{row['state']}( +\d+){{4}} +{lag}$", status.out, re.MULTILINE)
        since = f"failing since {row['failing']}: {row['reason']}"
        assert "".join(since.split()) in "".join(status.out.split())
    table = status.out[status.out.index("\nrepository ") :]
    assert max(len(line) for line in table.splitlines() if " " in line.strip()) <= 80
    assert [len(aggregator.published(name)) for name in ("errors", "unavailable")] == [0, 0]
    assert len(aggregator.published("xml")) == len(aggregator.expected("xml")) - 1


def test_what_an_update_needs_is_told_before_it_begins(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = home("update")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "nothing to update: add [[repositories]]" in done.err
    assert not (home.folder / "harvests").exists()
    text = home.config.read_text()
    for key, value, why in [
        ("header", None, "header of a is in the variable A_KEY, which is not set"),
        ("header", SECRET, "which is not printable ASCII, or no 'Name: value'"),
        ("token", f"{SECRET}é", "which is not printable ASCII"),
    ]:
        if value:
            monkeypatch.setenv("A_KEY", value)
        home.config.write_text(
            f'{text}\n[[repositories]]\nname = "a"\nurl = "http://a.invalid"\n{key} = "A_KEY"\n'
        )
        done = home("update")
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert why in done.err
        assert SECRET not in done.err
    rows = [f'{{ name = "{n}", url = "{n}://a.cz/oai" }}' for n in ("http", "https")]
    monkeypatch.setenv("SHEAF_REPOSITORIES", f"[{', '.join(rows)}]")
    assert "two of the repositories are one: a.cz/oai" in home("update").err


def test_secrets_come_from_variables_and_are_written_nowhere(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", f"X-Key: {SECRET}")
    with ExitStack() as stack:
        provider = stack.enter_context(serving(items(3)))
        home.config.write_text(
            f'{home.config.read_text()}\n[[repositories]]\nname = "a"\nurl = "{provider.url}"\n'
            'header = "A_KEY"\ntoken = "A_KEY"\npace = 0.01\n'
        )
        shown = [home("update"), home("update", "--json"), home("status")]
        assert [done.code for done in shown] == [0, 0, 0]
        assert {*provider.keys} == {SECRET}
        assert len(provider.verbs()) > 40  # of the one check
    assert all("checked 20" in done.out for done in shown[::2])
    (card,) = (home.folder / "harvests" / "cards").glob("*.html")
    assert "Report card of" in card.read_text("utf-8")
    shown.append(home("update"))  # nobody answers now
    assert shown[-1].code == 1
    assert SECRET not in "".join(done.out + done.err for done in shown)
    files = [path for path in home.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_other_sources_are_part_of_the_night_and_none_holds_another_back(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update that was interrupted is finished by the next one."""
    tree = tmp_path / "RePEc"
    text = home.config.read_text().replace('# directory = ""', f'directory = "{tree}"')
    with serving(items(3)) as provider:
        table = f'[[repositories]]\nname = "a"\nurl = "{provider.url}"\ncheck_days = 0\n'
        home.config.write_text(f"{text}\n{table}")
        done = home("update")
        assert done.code == 1
        assert [line.split()[:2] for line in done.out.splitlines()[1:3]] == [
            ["a", "whole"],
            ["redif", "(source)"],
        ]
        assert f"{tree}: no such file" in " ".join(done.out.split())
        assert len(state(home)) == 3
        shutil.copytree(SAMPLES, tree)
        provider.change(provider.items["oai:a.cz:1"], title="Another")
        with monkeypatch.context() as patch:
            patch.setattr(publish, "publish", _interrupt)
            assert home("update").code == 130
        waiting = home("status").out
        assert re.search(r"^redif \(source\) +whole +11 +0 +0 +7 +0 min$", waiting, re.MULTILINE)
        done = home("update")
        assert done.code == 0, done.err
    rows = state(home)
    assert rows["oai:a.cz:1"][2] == "Another"
    assert sum(":RePEc:" in name for name in rows) > 5


def test_own_records_have_counts_and_a_file_without_any_fails_each_night(home: Home) -> None:
    table = '[[records]]\nname = "people"\nfiles = ["*.csv"]\nidentifier = "id"\ncomplete = true\n'
    home.config.write_text(f"{home.config.read_text()}\n{table}")
    people = [f"{n},Person {n}" for n in range(60)]
    file, other = home.folder / "people.csv", home.folder / "others.csv"
    for change, row in [
        (lambda: None, "whole +60 +0 +0 +0 +0 min"),
        (lambda: people.__setitem__(7, "7,Another"), "whole +0 +1 +0 +0 +0 min"),
        (lambda: people.pop(), "whole +0 +0 +1 +0 +0 min"),
        (lambda: people.append("60,A\n,B"), "whole +1 +0 +0 +1 +0 min"),
        (lambda: other.write_text("id,title\n,C"), "failed +0 +0 +0 +1 +0 min"),
        (lambda: None, "failed +0 +0 +0 +1 +0 min"),
        (other.unlink, "whole +0 +0 +0 +0 +0 min"),
    ]:
        change()
        if (text := "\n".join(["id,title", *people, ""])) != (file.exists() and file.read_text()):
            file.write_text(text)
        done = home("update")
        assert re.search(rf"^records \(source\) +{row}$", done.out, re.MULTILINE), done.out
        assert done.code == row.startswith("failed"), done.err
        status = " ".join(home("status").out.split())
        assert ("others.csv: row 2: nothing at id" in status) == done.code
    file.write_text("id,title\n1,Person 1\n")
    for _ in range(2):  # so many are not deleted, and each night says so
        done = home("update")
        assert done.code == 1
        told = "people: 59 records that the files no longer hold are not deleted, as they are many"
        assert told in " ".join(home("status").out.split())


@pytest.mark.parametrize("more", ["records", "repository", "replicate"])
def test_what_a_mirror_refuses_is_told_before_anything_is_harvested(home: Home, more: str) -> None:
    table = '[[repositories]]\nname = "{}"\nurl = "{}"\ncheck_days = 0\n'
    text = home.config.read_text()
    with serving(items(3)) as first, serving(items(3)) as second:
        home.config.write_text(f"{text}\n{table.format('a', first.url)}replicate = true\n")
        assert home("update").code == 0
        b = table.format("b", second.url)
        rows = {
            "repository": b,
            "replicate": f"{b}replicate = true\n",
            "records": f"{table.format('a', first.url)}replicate = true\n"
            '[[records]]\nname = "r"\nfiles = ["*.csv"]\n',
        }
        home.config.write_text(f"{text}\n{rows[more]}")
        calls = len(first.calls)
        done = home("update")
        assert (done.code, done.err.count("\n"), done.out) == (2, 1, ""), done.err
        assert "this store replicates" in done.err
        assert (f"{first.host}:{first.port}/oai as `url` or in `former`" in done.err) == (
            more != "records"
        )
        assert (len(first.calls), second.calls) == (calls, [])


def _interrupt(context: Context) -> None:
    raise KeyboardInterrupt


def test_a_deadline_ends_one_harvest_and_no_other() -> None:
    outer = threading.Event()
    early, late = Deadline(outer, 0.0), Deadline(outer, 3600.0)
    assert early.is_set()
    assert early.wait()
    assert not late.wait(0.0)
    outer.set()
    assert late.wait()


def test_a_list_that_takes_too_long_goes_on_the_next_time(tmp_path: Path) -> None:
    """The one beside it is harvested meanwhile."""
    given = argparse.Namespace(config=None)
    context = Context(given, {"SHEAF_HTTP_HOST_CONCURRENT": "2"})

    def carry_out(minutes: float) -> list[tuple[str, str]]:
        options = ListOptions(HarvestDates(), {}, minutes=minutes)
        lists = [HarvestJob(provider.url, "oai_dc", None) for provider in (slow, quick)]
        outcomes = dict(harvest_lists(context, tmp_path, dict.fromkeys(lists, options), "test"))
        results = [result for job in lists if isinstance(result := outcomes[job], HarvestResult)]
        return [(result.status, result.error or "") for result in results]

    with serving(items(50), hang=60.0) as slow, serving(items(50)) as quick:
        slow.answers.append(_with_tokens(lambda p, c, a: replace(a, pause=p.hang)))
        why = "not finished within 0.03 minutes; the next run continues"
        assert carry_out(0.03) == [("partial", why), ("complete", "")]
        slow.answers.clear()
        assert carry_out(5) == [("complete", ""), ("complete", "")]
