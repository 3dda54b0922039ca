"""`sheaf harvest`: what a person gives it, and what it says."""

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from lxml import etree

from builder.http.secrets import strip_secrets
from builder.sources.harvest import folder
from builder.sources.harvest.list_walk import ListWalk
from builder.sources.harvest.version import ROW
from tests.builder.http.forwarding import forwarding
from tests.builder.sources.harvest.kept import expected, kept
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import NOW, Answer, Call, Provider, items
from tests.e2e.conftest import Home, sheaf
from tests.secret_urls import SECRET, WAYS


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHEAF_HTTP_TRIES", "2")


def parts(home: Path, form: str) -> list[Path]:
    return sorted(home.glob(f"*/part-*.{form}"))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["a.cz/oai", "DIR"], "is not the http or https URL"),
        (["ftp://a.cz/oai", "DIR"], "is not the http or https URL"),
        (["http:///oai", "DIR"], "is not the http or https URL"),
        (["http://a.cz:99999/", "DIR"], "is not the http or https URL"),
        (["http://a.cz/a b", "DIR"], "is not the http or https URL"),
        (["http://u:p@a.cz/oai", "DIR"], "use --header"),
        (["http://a.cz/oai", "DIR", "--from", "yesterday"], "expected 2026-11-22"),
        (["http://a.cz/oai", "DIR", "--until", "2026-02-30"], "expected 2026-11-22"),
        (["http://a.cz/oai", "DIR", "--from", "2026-02-02", "--until", "2026-02-01"], "is before"),
        (["http://a.cz/oai", "FILE"], "is not a folder"),
        (["http://a.cz/oai", "FILE/x"], "FILE/x"),
        (["http://a.cz/oai", "DIR", "--remove-missing"], "--remove-missing needs --full"),
        (
            ["http://a.cz/oai", "DIR", "--full", "--remove-missing", "--from", "2026-01-01"],
            "--remove-missing needs --full, and no dates",
        ),
        (["http://a.cz/oai", "DIR", "--full", "--accept-loss"], "--accept-loss is an addition"),
        (["http://a.cz/oai", "/proc/x"], "/proc/x"),
        (["http://a.cz/oai", "DIR", "--every", "-1"], "--every"),
        (["http://a.cz/oai", "DIR", "--header", "no colon"], "--header"),
        (["http://a.cz/oai", "DIR", "--format", "csv"], "--format"),
        (["http://a.cz/oai", "DIR", "--header", "A: b\r\nC: d"], "--header"),
        (["http://a.cz/oai", "DIR", "--every", "nan"], "--every"),
        (["http://a.cz/oai", "DIR", "--overlap", "x"], "--overlap"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(
    given: list[str], why: str, tmp_path: Path
) -> None:
    (tmp_path / "FILE").write_text("")
    places = {name: str(tmp_path / name) for name in ("DIR", "FILE", "FILE/x")}
    done = sheaf("harvest", *(places.get(one, one) for one in given))
    assert done.code == 2
    assert why in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "DIR").exists()


def test_a_repository_behind_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = "http://repository.invalid/oai"
    with serving(items(30), page_size=10) as provider, forwarding(provider.port) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url())
        done = sheaf("harvest", there, tmp_path / "by")
        assert done.code == 0, done.err
        assert done.out.startswith(f"{there} oai_dc: complete: 30 records (30 new")
        assert {target.partition("?")[0] for _, target in proxy.seen} == {there}
        assert proxy.connections == 1
        monkeypatch.setenv("no_proxy", "*.invalid")
        done = sheaf("harvest", there, tmp_path / "without")
        assert done.code == 1
        assert "dns: repository.invalid: " in done.out
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", "socks5://p")
    done = sheaf("harvest", there, tmp_path / "not")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("sheaf: http_proxy is not a usable proxy")
    assert not (tmp_path / "not").exists()


def test_secrets_of_a_base_url_and_of_headers_are_written_nowhere(
    tmp_path: Path, home: Home
) -> None:
    """Neither in a state, in a record's provenance, nor in what is printed, also of a failure."""
    header = ("--header", f"X-Key: {SECRET}")
    shown: list[str] = []
    with serving(items(3)) as provider:
        urls = [provider.url + way for way in WAYS]
        for json_ in ([], ["--json"]):
            done = sheaf("harvest", *urls, tmp_path / "by", *header, *json_)
            assert done.code == 0, done.err
            shown += [done.out, done.err]
        assert {*provider.keys} == {SECRET}
    wrong = f"ftp://user:{SECRET}@a.cz/", f"http://user:{SECRET}@a.cz/oai"
    for url in (*urls, *wrong):  # nobody answers now
        done = sheaf("harvest", url, tmp_path / "by", *header)
        shown += [done.out, done.err]
    states = [*(tmp_path / "by").glob("*/harvest.json")]
    assert len(states) == len({*map(strip_secrets, urls)})  # a new signature is no new repository
    done = home("ingest", tmp_path / "by")
    assert done.code < 2, done.err
    shown += [done.out, done.err, home("publish").out, *map(str, tmp_path.rglob("*"))]
    assert SECRET not in "".join(shown)
    for path in (*tmp_path.rglob("*"), *home.config.parent.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            data += gzip.decompress(data) if path.suffix == ".gz" else b""
            assert SECRET.encode() not in data, path


def test_each_form_holds_the_same(tmp_path: Path) -> None:
    with serving(items(25)) as provider:
        for form in folder.FORMS:
            done = sheaf("harvest", provider.url, tmp_path / form, "--format", form)
            assert done.code == 0, done.err
        done = sheaf("harvest", provider.url, tmp_path / "xml")  # it goes on as it began
        assert (done.code, len(parts(tmp_path / "xml", "xml"))) == (0, 1)
        done = sheaf("harvest", provider.url, tmp_path / "xml", "--format", "parquet")
        assert (done.code, "has the format xml" in done.err) == (2, True)
    held = {form: kept(tmp_path / form).rows for form in folder.FORMS}
    assert held["parquet"] == held["jsonl"]
    assert [row.record for row in held["xml"]] == [row.record for row in held["parquet"]]
    (parquet,), (lines,), (xml,) = (parts(tmp_path / form, form) for form in folder.FORMS)
    columns = duckdb.sql(f"DESCRIBE SELECT * FROM '{parquet}'").fetchall()
    assert [tuple(one[:2]) for one in columns] == [(c.name, c.type) for c in ROW]
    title = "SELECT dc_title[1], sets FROM '{}' WHERE identifier = 'oai:a.cz:2'"
    for path in (parquet, lines):
        assert duckdb.sql(title.format(path)).fetchall() == [("Title 2 – ěšč & <b>", ["a:b", "c"])]
    assert len(etree.parse(xml).getroot()) == 25


def test_the_account_is_told_for_people_and_for_programs(tmp_path: Path) -> None:
    with serving(items(25)) as provider:
        done = sheaf("harvest", provider.url, tmp_path)
        assert done.out == (
            f"{provider.url} oai_dc: complete: 25 records (25 new, 0 changed, "
            "2 of them deleted) in 2 pages, run 1\n"
        )
        provider.now = NOW.replace(day=23)
        provider.change(provider.items["oai:a.cz:3"], title="Another")
        (told,) = sheaf("harvest", provider.url, tmp_path, "--json").json
    assert (told["status"], told["new"], told["changed"], told["rows"]) == ("complete", 0, 1, 26)
    assert Path(told["folder"]).parent == tmp_path
    state = json.loads((Path(told["folder"]) / folder.STATE).read_text())
    assert state["identify"]["repositoryName"] == "Archive A"
    assert state["format"]["schema"] == "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
    assert json.loads((Path(told["folder"]) / folder.SETS).read_text())[0] == ["a", "The first set"]
    with serving(items(30)) as provider:
        home = tmp_path / "other"
        sheaf("harvest", provider.url, home)
        for number in range(3):
            del provider.items[f"oai:a.cz:{number}"]
        done = sheaf("harvest", provider.url, home, "--full")
    assert done.out.splitlines()[1:] == [
        "  3 records of earlier runs no longer listed: --remove-missing deletes them",
        "  no longer listed:",
        *(f"    oai:a.cz:{number}" for number in range(3)),
    ]


def test_prefixes_and_sets_are_harvests_of_their_own(tmp_path: Path) -> None:
    with serving(items(30)) as provider:
        given = ["--prefix", "oai_dc", "--prefix", "marc21", "--set", "a", "--set", "c"]
        told = sheaf("harvest", provider.url, tmp_path, "--json", *given).json
    assert [(one["prefix"], one["set"], one["records"]) for one in told] == [
        ("oai_dc", "a", 20),
        ("oai_dc", "c", 10),
        ("marc21", "a", 20),
        ("marc21", "c", 10),
    ]
    assert len({one["folder"] for one in told}) == 4


def test_what_a_repository_has_not_is_told_and_others_come(tmp_path: Path) -> None:
    with serving(items(3)) as provider, serving(items(3)) as gone:
        away = gone.url
    with serving(items(3)) as provider:
        given = ["--prefix", "oai_dc", "--prefix", "no", "--json"]
        done = sheaf("harvest", provider.url, away, tmp_path, *given)
    assert done.code == 1
    assert [one["status"] for one in done.json] == ["complete", "given up", "partial", "partial"]
    assert done.json[1]["error"].startswith("cannotDisseminateFormat")
    assert "connect" in done.json[2]["error"]
    assert sheaf("harvest", away, tmp_path).out.startswith(f"{away} oai_dc: nothing came")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>Nothing here</html>"),
        (200, b""),
        (200, b"{}"),
        (200, b"<rss/>"),
        (404, b"<html>Not found"),
        (500, b"Internal error"),
        (302, b""),
    ],
)
def test_a_url_where_no_repository_is_says_so(status: int, body: bytes, tmp_path: Path) -> None:
    with serving(items(30)) as provider:

        def elsewhere(provider: Provider, call: Call, answer: Answer) -> Answer:
            return Answer(status, {"Content-Type": "text/html", "Location": "/round"}, body)

        provider.answers.append(elsewhere)
        done = sheaf("harvest", provider.url, tmp_path, "--from", "2026-01-01")
        assert done.code == 1
        head, why = done.out.splitlines()
        assert head == f"{provider.url} oai_dc: nothing came"
        assert why.startswith("  there is no OAI-PMH repository at this URL: ListRecords")
        assert [*tmp_path.iterdir()] == []
        # Once one is there, it is asked for all that it tells of itself.
        provider.answers.remove(elsewhere)
        (told,) = sheaf("harvest", provider.url, tmp_path, "--json").json
        assert (told["run"], told["status"], told["records"]) == (1, "complete", 30)
    (state,) = tmp_path.glob("*/harvest.json")
    assert json.loads(state.read_bytes())["identify"]["repositoryName"] == "Archive A"


def test_a_set_that_is_not_listed_is_told_of(tmp_path: Path) -> None:
    """Unless sets were not listed to their end."""
    says = ["the repository does not list the set nope:x"]
    given = ["--set", "a", "--set", "nope:x", "--json"]
    with serving(items(6)) as provider:
        for _ in range(2):
            done = sheaf("harvest", provider.url, tmp_path / "all", *given)
            assert [one["notes"] for one in done.json] == [[], says]
            assert (done.code, done.json[1]["status"]) == (0, "complete")

        def torn(provider: Provider, call: Call, answer: Answer) -> Answer:
            if call.verb != "ListSets":
                return answer
            if "resumptionToken" in call.arguments:
                return Answer(404, {}, b"")
            token = b"<resumptionToken>2</resumptionToken></ListSets>"
            return replace(answer, body=answer.body.replace(b"</ListSets>", token))

        provider.answers.append(torn)
        done = sheaf("harvest", provider.url, tmp_path / "torn", *given)
        assert [(one["records"], one["notes"]) for one in done.json] == [(4, []), (0, [])]


def test_what_came_is_told_though_a_harvest_was_asked_wrongly(tmp_path: Path) -> None:
    with serving(items(3)) as one, serving(items(3)) as other:
        assert sheaf("harvest", one.url, tmp_path, "--format", "xml").code == 0
        given = [one.url, other.url, tmp_path, "--format", "jsonl"]
        done = sheaf("harvest", *given)
    assert (done.code, "has the format xml" in done.err) == (2, True)
    assert done.out.startswith(f"{other.url} oai_dc: complete: 3 records")


def test_no_more_of_a_host_at_a_time_than_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    active, most, lock = [0], [0], threading.Lock()

    def counted(provider: Provider, call: Call, answer: Answer) -> Answer:
        with lock:
            active[0] += 1
            most[0] = max(most[0], active[0])
        provider.over.wait(0.02)
        with lock:
            active[0] -= 1
        return answer

    with ExitStack() as stack:
        sites = [stack.enter_context(serving(items(30), page_size=5)) for _ in range(4)]
        for site in sites:
            site.answers.append(counted)
        urls = [site.url for site in sites]
        assert sheaf("harvest", *urls, tmp_path / "1").code == 0
        assert most == [1]  # all four are one host
        monkeypatch.setenv("SHEAF_HTTP_COMMANDS", "{ harvest = { host_concurrent = 3 } }")
        assert sheaf("harvest", *urls, tmp_path / "3").code == 0
    assert 1 < most[0] <= 3


def test_it_goes_on_where_it_was_asked_to_end(tmp_path: Path) -> None:
    """SIGTERM keeps what came: no page that was taken is asked for again."""
    with serving(items(200)) as provider:
        waiting = threading.Event()

        def hang(provider: Provider, call: Call, answer: Answer) -> Answer:
            if "resumptionToken" in call.arguments and call.number == 7:
                waiting.set()
                provider.over.wait(20)
            return answer

        provider.answers.append(hang)
        command = [sys.executable, "-m", "builder", "harvest", provider.url, str(tmp_path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert waiting.wait(60)
            os.kill(process.pid, signal.SIGTERM)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 143
        assert "Traceback" not in err
        provider.answers.remove(hang)
        before = len(provider.calls)
        done = sheaf("harvest", provider.url, tmp_path)
        assert "resuming run 1" in done.err
        assert "resumptionToken" in provider.calls[before].arguments
        assert "complete: 200 records" in done.out
        assert len(provider.calls) <= 3 + 10 + 2
    assert kept(tmp_path).doubled == []


def test_another_window_gives_a_run_up_that_goes_on(tmp_path: Path) -> None:
    with serving(items(60), "503", retry_after="0") as provider:

        def gone(provider: Provider, call: Call, answer: Answer) -> Answer:
            if "resumptionToken" in call.arguments:
                return Answer(503, {}, b"")
            return answer

        provider.answers.append(gone)
        done = sheaf("harvest", provider.url, tmp_path, "--json")
        assert done.json[0]["status"] == "partial"
        provider.answers.remove(gone)
        done = sheaf("harvest", provider.url, tmp_path, "--full", "--json")
        assert "abandoning run 1" in done.err
        assert (done.json[0]["run"], done.json[0]["status"]) == (2, "complete")
        assert kept(tmp_path).doubled == []
        assert len(kept(tmp_path).rows) == 60


def test_a_record_that_cannot_be_had_is_asked_for_again_and_holds_nothing_up(
    tmp_path: Path,
) -> None:
    poison = frozenset({"oai:a.cz:27"})
    with serving(items(60), "bad-record-500", poison=poison) as provider:
        for run in (1, 2):
            done = sheaf("harvest", provider.url, tmp_path, "--json")
            assert (done.code, done.json[0]["status"]) == (1, "partial")
            assert [one["identifier"] for one in done.json[0]["missing"]] == sorted(poison)
            (state,) = tmp_path.glob("*/harvest.json")
            since = json.loads(state.read_bytes())["runs"][-1]["since"]
            assert (since is not None) == (run == 2)  # it is up to date
        provider.poison = frozenset()
        done = sheaf("harvest", provider.url, tmp_path, "--json")
        assert (done.code, done.json[0]["new"], done.json[0]["missing"]) == (0, 1, [])
        assert kept(tmp_path).state == expected(provider.state())


def test_a_repository_that_is_away_for_a_while_is_gone_on_with(tmp_path: Path) -> None:
    """Its pages say so with a status that is good: neither the token nor a page is lost."""
    with serving(items(100)) as provider:

        def away(provider: Provider, call: Call, answer: Answer) -> Answer:
            if call.number < 6:
                return answer
            return Answer(200, {"Content-Type": "text/html"}, b"<html>Back soon</html>")

        provider.answers.append(away)
        done = sheaf("harvest", provider.url, tmp_path, "--json")
        assert (done.code, done.json[0]["status"], done.json[0]["records"]) == (1, "partial", 60)
        assert done.json[0]["error"].endswith("a document <html>")
        provider.answers.remove(away)
        before = len(provider.calls)
        done = sheaf("harvest", provider.url, tmp_path, "--json")
        assert (done.code, done.json[0]["run"], done.json[0]["pages"]) == (0, 1, 5)
        assert "resumptionToken" in provider.calls[before].arguments
        assert kept(tmp_path).doubled == []


def test_a_header_goes_to_the_origin_that_it_is_bound_to(tmp_path: Path) -> None:
    with serving(items(3)) as one, serving(items(3)) as other:
        urls = [one.url, one.url + "?x=1", other.url]
        done = sheaf("harvest", *urls, tmp_path, "--header", "X-Key: secret")
        assert (done.code, "several origins" in done.err, "secret" in done.err) == (2, True, False)
        origin = one.url.removesuffix("/oai")
        assert sheaf("harvest", *urls, tmp_path, "--header", f"{origin} X-Key: secret").code == 0
        assert ({*one.keys}, {*other.keys}) == ({"secret"}, {""})
        assert sheaf("harvest", *urls[:2], tmp_path, "--header", "X-Key: own").code == 0
        assert one.keys[-1] == "own"
        done = sheaf("harvest", other.url, tmp_path, "--header", f"{origin} X-Key: secret")
        assert (done.code, f"no URL has the origin {origin}" in done.err) == (2, True)


def test_a_run_that_is_given_up_hands_on_what_it_still_owes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = frozenset({"oai:a.cz:27", "oai:a.cz:41"})
    with serving(items(60), "bad-record-500", poison=poison) as provider:
        assert sheaf("harvest", provider.url, tmp_path).code == 1
        provider.poison = frozenset()

        def interrupt(self: ListWalk) -> None:
            self._taking.fetch(*self.run.owed[0])
            del self.run.owed[0]
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(ListWalk, "fetch_owed", interrupt)
            assert sheaf("harvest", provider.url, tmp_path).code == 130
        for options in (("--until", "2001-01-01"), ()):
            assert sheaf("harvest", provider.url, tmp_path, *options).code == 0
        assert {one.identifier for one in kept(tmp_path).rows} >= poison
