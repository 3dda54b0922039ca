"""The commands as a person uses them, faults of the person included."""

import csv
import gzip
import html
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import duckdb
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from builder.snapshot import views
from builder.store.context import from_environment
from functions.snapshot.errors import VERSION
from functions.snapshot.manifest import UNSTAMPED, Manifest
from functions.store import engine
from tests.builder.indexes import line
from tests.e2e.conftest import Home, make_home, sheaf, warc

pytestmark = pytest.mark.shared(3)

PAGES = {
    "http://www.knihovna.cz/": b"<html lang=cs><title>Knihovna</title>",
    "http://www.knihovna.cz/akce": b"<title>Akce</title>",
    "http://blog.knihovna.cz/": b"<title>Blog</title>",
}
WHY = ("--reason", "why")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a home whose pages are published, which is only read and copied."""
    folder = tmp_path_factory.mktemp("original")
    home = make_home(folder / "home")
    home.publish_pages(folder / "one.warc.gz", PAGES)
    return home


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two files, equal but for their names, that take a while to read."""
    folder = tmp_path_factory.mktemp("large")
    pages = {f"http://a{n}.cz/": os.urandom(3000) for n in range(2500)}
    path = warc(folder / "large.warc.gz", pages)
    return path, shutil.copy(path, folder / "other.warc.gz")


def one_line(text: str) -> str:
    """Return the last line, after checking that nothing looks like a traceback."""
    assert "Traceback" not in text
    lines = text.strip().splitlines()
    assert lines[-1].startswith("sheaf: ")
    return lines[-1]


def test_three_commands_from_files_to_an_endpoint(home: Home, tmp_path: Path) -> None:
    crawls = tmp_path / "crawls"
    crawls.mkdir()
    warc(crawls / "one.warc.gz", PAGES)
    ingested = home("ingest", crawls, "--collection", "serials:harvest_november07")
    assert ingested.code == 0, ingested.err
    assert "3 captures from 1 file, ready" in ingested.out
    published = home("publish")
    assert published.code == 0, published.err
    assert "5 records" in published.out  # with both collections'
    with home.served() as url:
        from tests.e2e.harvester import harvest

        assert harvest(url).records == 5
        assert harvest(url, set="collection:serials").records == 5
        assert harvest(url, set="domain:cz:knihovna:www").records == 2
        assert harvest(url, set="mime:image").records == 0


def test_sets_by_rules_from_the_documents_example(home: Home, tmp_path: Path) -> None:
    """The example of docs/reference/oai-pmh.md is valid and makes sets of what is ingested."""
    document = (Path(__file__).parents[2] / "docs" / "reference" / "oai-pmh.md").read_text("utf-8")
    (example,) = re.findall(r"```toml\n(\[sets\.descriptions\].*?)```", document, re.DOTALL)
    home.config.write_text(f"{home.config.read_text()}\n{example}")
    pages = {f"http://{host}/": b"<html>x</html>" for host in ("www.idnes.cz", "a.cz")}
    home.publish_pages(tmp_path / "a.warc.gz", pages)
    rows = home("query", "SELECT set_spec, records, live FROM sets WHERE set_spec LIKE 'topic%'")
    assert rows.out == "set_spec,records,live\ntopic,1,1\ntopic:news,1,1\n"
    with home.served() as url, urlopen(f"{url}?verb=ListSets") as answer:
        text = answer.read().decode()
    specs = re.findall("<setSpec>([^<]*)<", text)
    assert specs[-4:] == ["mime:text:html", "topic", "topic:news", "topic:images"]
    assert "<dc:description>Czech newspapers on the web.</dc:description>" in text


def test_json_is_one_document_and_nothing_else(home: Home, tmp_path: Path) -> None:
    path = warc(tmp_path / "one.warc.gz", PAGES)
    (source,) = home("ingest", "--json", path).json["sources"]
    assert (source["captures"], source["faults"], source["format"]) == (3, 0, "warc.gz")
    assert home("status", "--json").json["intake"][0]["captures"] == 3
    assert home("publish", "--json").json["new"] == 3
    status = home("status", "--json").json
    assert status["snapshot"]["records"] == 3
    assert status["intake"] == []
    rows = home("query", "--json", "SELECT url, title FROM captures ORDER BY url").out
    assert [json.loads(line)["title"] for line in rows.splitlines()] == ["Blog", "Knihovna", "Akce"]


def test_query_gives_csv_and_every_view_answers(published: Home) -> None:
    views = {"records": 3, "captures": 3, "sets": 8, "snapshots": 1, "faults": 0, "sources": 1}
    counts = ", ".join(f"(SELECT count(*) FROM {view}) AS {view}" for view in views)
    result = published("query", f"SELECT {counts}")
    assert result.code == 0, result.err
    assert list(csv.DictReader(io.StringIO(result.out))) == [{v: str(n) for v, n in views.items()}]
    wrong = published("query", "SELECT nothing FROM captures")
    assert wrong.code == 2
    assert "nothing" in wrong.err
    assert "Traceback" not in wrong.err


def test_the_help_of_query_names_every_view() -> None:
    with engine.connect() as connection:
        manifest = Manifest(1, UNSTAMPED, "a.cz", (), {})
        connection.execute(views.views(manifest, views.empty))
        rows = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal")
        made = [name for (name,) in rows.fetchall()]
    (listed,) = re.findall(r"Views: ([^.]*)\.", " ".join(sheaf("query", "--help").out.split()))
    assert sorted(listed.split(", ")) == sorted(made)
    assert len(made) > 20


def test_ingest_names_the_settings_that_publish_what_it_left_out(
    home: Home, tmp_path: Path
) -> None:
    path = tmp_path / "some.warc"
    with path.open("wb") as out:
        writer = WARCWriter(out, gzip=False)
        for number, status in enumerate(("200 OK", "302 Found", "404 Not Found")):
            head = StatusAndHeaders(status, [("Content-Type", "text/html")], "HTTP/1.1")
            url = f"http://a.cz/{number}"
            writer.write_record(
                writer.create_warc_record(url, "response", io.BytesIO(b"x"), http_headers=head)
            )
    said = home("ingest", path).out
    assert "2 records are not published: 1 redirect, 1 error" in said
    setting = 'include = ["redirects", "errors"]'
    assert f"`documents.{setting}`" in said
    text = home.config.read_text()
    assert "# include = []" in text
    home.config.write_text(text.replace("# include = []", setting))
    again = home("ingest", path)
    assert "3 captures" in again.out, again.err
    assert "documents." not in again.out


def test_the_shipped_views_work_in_plain_duckdb(published: Home, tmp_path: Path) -> None:
    """Where they lie, and from anywhere by the variable that names the root, as over httpfs."""
    store = (published.folder / "store").rename(tmp_path / "it's a copy")
    program = (
        "import duckdb, sys; c = duckdb.connect(); root = sys.argv[1];"
        "root and c.execute('SET VARIABLE root = ?', [root]);"
        "c.execute(open(root + 'snapshots/1/views.sql').read());"
        "print(c.execute('SELECT count(*), min(datestamp) IS NOT NULL FROM captures').fetchall())"
    )
    for root, folder in (("", store), (f"{store}/", tmp_path)):
        line = [sys.executable, "-c", program, root]
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[(3, True)]"


def test_a_second_publish_and_nothing_new(home: Home, tmp_path: Path) -> None:
    path = home.publish_pages(tmp_path / "one.warc.gz", PAGES)
    home("ingest", "--again", path, warc(tmp_path / "two.warc.gz", {"http://novy.cz/": b"x"}))
    published = home("publish", "--json").json
    assert (published["new"], published["changed"], published["unchanged"]) == (1, 0, 3)
    again = home("publish")
    assert again.code == 0
    assert "nothing new" in again.out


def test_faults_are_counted_and_strict_minds_them(home: Home, tmp_path: Path) -> None:
    whole = warc(tmp_path / "one.warc.gz", PAGES)
    cut = tmp_path / "cut.warc.gz"
    cut.write_bytes(whole.read_bytes()[:-40])
    result = home("ingest", "--jobs", "1", "--strict", whole, cut)
    assert result.code == 1
    assert "faults" in result.out
    assert home("ingest", "--jobs", "1", whole, cut).code == 0
    home("publish")
    rows = list(csv.DictReader(io.StringIO(home("query", "FROM faults").out)))
    assert {row["source"] for row in rows} == {"cut.warc.gz"}
    assert all(row["code"] and row["done"] for row in rows)


def test_no_archive_beside_archives_is_a_fault_and_named_a_failure(
    home: Home, tmp_path: Path
) -> None:
    crawls = tmp_path / "crawls"
    crawls.mkdir()
    warc(crawls / "one.warc.gz", PAGES)
    for name in ("notes.txt", "one.warc.gz.md5"):
        (crawls / name).write_text("not an archive")
    mixed = home("ingest", "--jobs", "1", crawls)
    assert mixed.code == 0
    assert "not-an-archive" in mixed.out
    assert "failed" not in mixed.out
    assert home("ingest", "--jobs", "1", "--strict", "--again", crawls).code == 1
    named = home("ingest", "--jobs", "1", crawls, crawls / "notes.txt")
    assert named.code == 1
    assert "1 file failed: unreadable, or no captures where some were expected" in named.out
    assert f"\n  {crawls}/notes.txt: not-an-archive\n" in named.out


def test_a_secondary_index_is_passed_over(home: Home, tmp_path: Path) -> None:
    """Its index beside it is read; that it is none itself is no fault."""
    indexes = tmp_path / "indexes"
    indexes.mkdir()
    (indexes / "cdx-00000.gz").write_bytes(gzip.compress(line() + b"\n"))
    (indexes / "cluster.idx").write_text("cz,a)/page 20080430204826\tcdx-00000.gz\t0\t188224\t1\n")
    done = home("ingest", "--jobs", "1", "--strict", indexes)
    assert done.code == 0
    assert "1 secondary-index" in done.out
    alone = home("ingest", indexes / "cluster.idx")
    assert alone.code == 0
    assert "1 secondary-index" in alone.out


def test_no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["publish"], ["ingest", "x"], ["serve"], ["status"], ["query", "x"]):
        result = sheaf(*command)
        assert result.code == 2
        assert "sheaf init" in one_line(result.err)
    (tmp_path / "store").mkdir()
    assert sheaf("status", "--store", tmp_path / "store").code == 0
    monkeypatch.setenv("SHEAF_STORE_URI", "store")  # the environment alone configures a server
    assert sheaf("status").code == 0
    assert "named.toml" in one_line(sheaf("status", "--config", "named.toml").err)


def test_a_wrong_key_is_named(home: Home) -> None:
    home.config.write_text("[pages]\nrecords = 0\n")
    assert "pages.records is 0, expected" in one_line(home("status").err)
    home.config.write_text("[page]\nrecords = 0\n")
    assert "unknown key page" in one_line(home("publish").err)


def test_init_does_not_overwrite(home: Home) -> None:
    again = sheaf("init", home.folder)
    assert again.code == 2
    assert "already exists" in one_line(again.err)
    wrong = sheaf("init", home.folder / "new", "--namespace", "nodot")
    assert "domain name" in one_line(wrong.err)
    assert not (home.folder / "new").exists()


def test_init_elsewhere_names_the_store_as_other_commands_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--store is relative to here, and store.uri to the configuration."""
    monkeypatch.chdir(tmp_path)
    options = ("--namespace", "archive.example.org", "--store")
    done = sheaf("init", "home", *options, "home/store")
    assert "next, in home: sheaf ingest" in done.out
    assert 'uri = "store"' in (tmp_path / "home" / "sheaf.toml").read_text()
    assert (tmp_path / "home" / "store").is_dir()
    done = sheaf("init", "--config", "other.toml", *options, "other")
    assert "next, with --config other.toml: sheaf ingest" in done.out
    assert 'uri = "other"' in (tmp_path / "other.toml").read_text()


def test_nothing_ingested_and_nothing_published(home: Home) -> None:
    assert "sheaf ingest" in one_line(home("publish").err)
    assert "sheaf publish" in one_line(home("query", "SELECT 1").err)
    assert home("status").code == 0


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("verify", "there is no such folder"),
        ("status", "there is no such folder"),
        ("serve --port 0", "there is no such folder"),
        ("expire --keep 1", "there is no such folder"),
    ],
)
def test_where_there_is_no_store_nothing_is_well(tmp_path: Path, command: str, reason: str) -> None:
    typo = tmp_path / "typo"
    result = sheaf(*command.split(), "--store", typo)
    assert (result.code, result.out) == (2, "")
    assert f"{typo}: {reason}" in one_line(result.err)
    assert not typo.exists()


def test_an_ingested_store_that_was_never_published_is_one(home: Home, tmp_path: Path) -> None:
    home("ingest", warc(tmp_path / "one.warc.gz", PAGES))
    assert home("verify").code == 0
    assert home("expire", "--keep", "1").code == 0


def test_expire_says_why_it_keeps_more_than_asked(home: Home, tmp_path: Path) -> None:
    for number in (1, 2):
        pages = dict([*PAGES.items()][:number])
        home.publish_pages(tmp_path / f"{number}.warc.gz", pages)
    assert "more than 1 kept, because readers use them" in home("expire", "--keep", "1").out


@pytest.mark.parametrize("place", ["", "s3://bucket/archive"], ids=["folder", "bucket"])
def test_no_copy_is_put_into_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Before anything is asked of the store: there is no server of this address."""
    monkeypatch.setenv("SHEAF_STORE_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    store = place or str(tmp_path / "store")
    if not place:
        Path(store).mkdir()
    for inside in ("/sub", "/records/sub/"):
        result = sheaf("copy", "--store", store, store + inside)
        assert (result.code, result.out) == (2, "")
        assert "is inside the store" in one_line(result.err)
    if not place:  # a name that begins like the store's is another place
        assert "nothing is published" in sheaf("copy", "--store", store, f"{store}2").err
    assert [path.name for path in tmp_path.iterdir()] == ([] if place else ["store"])


def test_a_taken_port(published: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = published("serve", "--port", port)
    assert (result.code, result.out) == (2, "")  # once, however many workers there are
    assert result.err == f"sheaf: port {port} of 127.0.0.1 is in use: choose another with --port\n"
    assert "cannot listen" in one_line(published("serve", "--host", "no.such.host.invalid").err)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("version", "said"), [(9, "install Sheaf 0.2.0 or later"), (1, "make a new store, and ingest")]
)
def test_a_store_of_another_schema(published: Home, version: int, said: str) -> None:
    pointer = published.folder / "store" / "current.json"
    pointer.write_text(pointer.read_text().replace(f'"schema": {VERSION}', f'"schema": {version}'))
    for command in (["serve"], ["publish"], ["status"], ["query", "SELECT 1"], ["verify"]):
        result = published(*command)
        assert result.code == 2
        assert said in one_line(result.err)


def test_an_intake_of_an_earlier_schema(published: Home, tmp_path: Path) -> None:
    published("ingest", warc(tmp_path / "two.warc.gz", PAGES))
    (summary,) = (published.folder / "store" / "intake").glob("*/run.json")
    summary.write_text(summary.read_text().replace(f'"schema": {VERSION}', '"schema": 1'))
    for command in ("publish", "status"):
        result = published(command)
        assert result.code == 2
        assert "a Sheaf before 0.2.0 wrote this run: remove it" in one_line(result.err)


def test_a_namespace_is_to_be_chosen_before_the_first_publish(tmp_path: Path) -> None:
    path = warc(tmp_path / "one.warc.gz", PAGES)
    sheaf("ingest", "--store", tmp_path / "store", path)
    refused = sheaf("publish", "--store", tmp_path / "store")
    assert refused.code == 2
    assert "repository.namespace is still example.org" in one_line(refused.err)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--port", "99999"], "port 99999: expected"),
        (["ingest", ""], "argument SOURCE: '' is empty"),
        (["ingest", "x", "--jobs", "0"], "--jobs 0: expected"),
        (["ingest", "x", "--collection", "a::b"], "a level between colons is empty"),
        (["ingest", "/dev/null"], "not a regular file"),
        (["ingest", "missing.warc"], "no such file"),
        (["ingest", "."], "empty folder"),
        (["ingest", "gs://bucket/x"], "expected a file, a folder, s3://bucket/prefix or a URL"),
        (["ingest", "s3://"], "is not a bucket name"),
        (["ingest", "part"], "expect --run RUN, and no SOURCE"),
        (["ingest", "commit", "a.warc.gz", "--run", "x"], "expect --run RUN, and no SOURCE"),
        (["ingest", "part", "--run", "x"], "there is no run x to go on with"),
        (["ingest", "plan"], "expected web archives or indexes"),
        (["ingest", "plan", "-"], "standard input cannot be read in parts"),
        (["ingest", "plan", ".", "--chunk", "0"], "--chunk 0: expected megabytes from 1 to 4096"),
        (["ingest", "x", "--index", "0"], "--run and --index expect `sheaf ingest part`"),
        (["status", "--store", ""], "argument --store: '' is empty"),
        (["status", "--store", "gs://bucket/x"], "expected s3://bucket/prefix"),
        (["verify", "--sample", "0"], "--sample 0: expected a number above 0 and up to 100"),
        (["verify", "--sample", "nan"], "--sample nan: expected"),
        (["verify", "--sample", "101"], "--sample 101: expected"),
        (["verify", "--seed", "7"], "--sample PERCENT"),
        (["withdraw", "--set", "domain:cz"], "--reason is missing"),
        (["withdraw", *WHY], "no items selected"),
        (["withdraw", "--from", "2007", *WHY], "no items selected"),
        (["withdraw", "--set", "no set", *WHY], "not a set specification"),
        (
            ["withdraw", "--set", "a", "--from", "2015", "--until", "2014"],
            "--from 2015 is later than --until",
        ),
        (
            ["withdraw", "--set", "domain:se", *WHY],
            "there is no set domain:se; the nearest name is domain:",
        ),
        (["withdraw", "--set", "domain:cz", "--until", "2006", *WHY], "no item matches"),
        (["withdraw", "--digest", "ABC", *WHY], "--digest ABC: expected a SHA-1 of 32"),
        (
            ["withdraw", "--url-prefix", "a.cz/b", *WHY],
            "--url-prefix a.cz/b: expected a URL with",
        ),
        (
            ["withdraw", "--identifier", "oai:b.cz:none", *WHY],
            "there is no item oai:b.cz:none",
        ),
        (["reinstate", "--set", "domain:cz"], "none of these items is withdrawn\n"),
        (["reinstate"], "no items selected"),
        (["reinstate", "--set", "domain:cz", "--purge"], "unrecognized arguments: --purge"),
        (["reinstate", "--set", "domain:cz", *WHY], "unrecognized arguments: --reason"),
        (["expire"], "nothing selected"),
        (["expire", "--keep", "0"], "expected a number from 1"),
        (["expire", "--older-than", "soon"], "expected a number with s, m, h, d or w"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_arguments_that_cannot_be(published: Home, arguments: list[str], said: str) -> None:
    result = published(*arguments)
    assert (result.code, result.out) == (2, "")
    assert said in f"{one_line(result.err)}\n"


def test_statements_of_every_kind(published: Home) -> None:
    assert published("query", "-- nothing to ask").out == ""
    assert published("query", "CREATE TABLE x (y INTEGER)").code == 0
    assert published("query", "SELECT TIMESTAMPTZ '2026-01-01 00:00:00+00' AS t").code == 0
    odd = (
        "SELECT 'nan'::DOUBLE AS n, [1.5::DOUBLE, '-inf'::DOUBLE] AS n, 7 AS n, "
        "MAP {DATE '2007-11-05': 'inf'::FLOAT} AS m, '\\xFF'::BLOB AS n_1, 1.50 AS d"
    )

    def never(name: str) -> object:
        raise AssertionError(f"{name} is no JSON")

    assert json.loads(published("query", "--json", odd).out, parse_constant=never) == {
        "n": None,
        "n_1": [1.5, None],
        "n_2": 7,
        "m": {"2007-11-05": None},
        "n_1_1": "/w==",
        "d": "1.50",
    }
    (row,) = csv.DictReader(io.StringIO(published("query", odd).out))
    assert (row["n"], row["n_1"], row["n_2"]) == ("nan", "[1.5, null]", "7")
    lists = published("query", "SELECT sets FROM captures ORDER BY url LIMIT 1").out.splitlines()[1]
    assert json.loads(next(csv.reader([lists]))[0]) == ["domain:cz:knihovna:blog", "mime:text:html"]


def test_a_statement_that_takes_long_ends_when_it_is_told_to(
    published: Home, tmp_path: Path
) -> None:
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        begun = tmp_path / f"{number}.csv"
        sql = (
            f"COPY (SELECT 1) TO '{begun}'; "
            "SELECT sum(a.range * b.range % 7) FROM range(900000) a, range(900000) b"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "builder", "query", "--config", str(published.config), sql],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            deadline = time.monotonic() + 30
            while not begun.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.2)  # so that the second statement, of some minutes, has begun
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        assert (process.returncode, out) == (code, "")
        assert "Traceback" not in err


def test_superseded_versions_are_in_no_view(home: Home, tmp_path: Path) -> None:
    path = home.publish_pages(tmp_path / "one.warc.gz", PAGES)
    home("ingest", path, "--collection", "late")
    assert home("publish", "--json").json["changed"] == 3
    for view, count in (("records", 4), ("captures", 3)):  # with the collection
        row = home("query", f"SELECT count(*), count(DISTINCT identifier) FROM {view}").out
        assert row.splitlines()[1] == f"{count},{count}"
        late = f"SELECT bool_and(list_contains(sets, 'collection:late')) FROM {view}"
        assert home("query", late).out.splitlines()[1] == "True"


def test_the_documented_way_to_read_a_store_passes_superseded_versions(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for more in ([], ["--collection", "late"]):
        home.publish_pages(tmp_path / "one.warc.gz", PAGES, *more)
    document = (Path(__file__).parents[2] / "docs" / "reference" / "store.md").read_text("utf-8")
    commands = re.findall(r'^duckdb -init (snapshots/\d+/views.sql) -c "(.+)"$', document, re.M)
    assert len(commands) == 3
    glob = re.findall(r"Do not read the files by a glob.\*\* `(\S+)`", document)
    monkeypatch.chdir(home.folder / "store")
    connection = duckdb.connect()
    wrong = connection.execute(f"SELECT count(*) FROM '{glob[0]}' WHERE kind = 'capture'")
    assert wrong.fetchone() == (6,)
    for views_, sql in commands:
        connection.execute(Path(re.sub(r"\d+", "2", views_)).read_text())
        found = connection.execute(sql).fetchall()
        if "GROUP BY kind" in sql:
            assert dict(found) == {"capture": 3, "collection": 1}
    assert connection.execute("SELECT count(*) FROM 'captures.parquet'").fetchone() == (3,)
    connection.close()


def test_an_interrupt_is_one_line_or_none(home: Home, large: tuple[Path, Path]) -> None:
    """Ctrl-C, which a terminal sends to workers as well, at all stages: while they start, too."""
    begin = """
import os, signal, sys, threading
from builder.__main__ import main
signal.signal(signal.SIGINT, signal.SIG_DFL)  # as main begins, which a busy machine may delay
later = threading.Timer(float(sys.argv.pop(1)), os.killpg, (os.getpgrp(), signal.SIGINT))
later.daemon = True
later.start()
raise SystemExit(main())
"""
    arguments = ["ingest", "--jobs", "2", *map(str, large), "--config", str(home.config)]
    for delay in (0.05, 0.4, 0.6, 0.8):  # as that process sees it, whatever else the machine does
        done = subprocess.run(
            [sys.executable, "-c", begin, str(delay), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path.cwd(),
            start_new_session=True,
        )
        assert done.returncode in (130, -signal.SIGINT), (delay, done.stderr)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("resuming: ")]
        assert lines in ([], ["sheaf: interrupted; run the command again to finish its work"]), (
            delay
        )
    assert home("status", "--json").json["intake"] == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("closed, code", [(">&- 2>&-", 0), ("<&- 2>&-", 0), ("--no-such 2>&-", 2)])
def test_standard_streams_may_be_closed(home: Home, tmp_path: Path, closed: str, code: int) -> None:
    """What is opened next would have their numbers, and be written to as if it were they."""
    home("ingest", warc(tmp_path / "one.warc.gz", PAGES))
    line = f'"{sys.executable}" -m builder publish --config "{home.config}" {closed}'
    assert subprocess.run(["sh", "-c", line], cwd=Path(__file__).parents[2]).returncode == code
    if code == 0:
        assert home("status", "--json").json["snapshot"]["records"] == 3
        assert home("verify").code == 0


def test_a_store_that_may_not_be_written(home: Home, tmp_path: Path) -> None:
    shutil.rmtree(home.folder / "store")
    (home.folder / "store").write_text("a file where the store should be")
    result = home("ingest", warc(tmp_path / "one.warc.gz", PAGES))
    assert result.code == 2
    assert "store is a file, and a store is a folder" in one_line(result.err)


@pytest.mark.thorough
def test_the_demo_from_end_to_end(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    result = sheaf(  # its server, a process, goes by the real clock
        "demo", "--once", "--json", "--folder", folder, "--port", "0", surround=from_environment
    )
    assert result.code == 0, result.err
    account = result.json
    assert account["records"] == account["harvested"] > account["captures"] > 40
    assert account["pages"] > 1
    (count,) = duckdb.execute(
        "SELECT count(DISTINCT position) FROM read_parquet($files) WHERE sequence = 1",
        {"files": [str(p) for p in (folder / "store/records/records").iterdir()]},
    ).fetchall()
    assert count == (account["records"],)
    assert account["repec"].pop("since").endswith("Z")
    assert [row[:2] for row in account["repec"].pop("incidences")] == [
        ["change", "tobi"],
        ["deletion", "tobi"],
        ["change", "fobi"],
        ["deletion", "fobi"],
    ]
    assert account["dataset"] == "success"
    assert account["checks"]["verdict"] in ("clean", "advice")
    assert "<h1>Sheaf" in (folder / "check.html").read_text("utf-8")
    assert account["repec"] == {"templates": 11, "files": 3, "harvested": 2, "deleted": 1}
    assert sheaf("verify", "--store", folder / "store").code == 0
    restored = result.json["restored"]
    assert restored["restored"] > 10
    assert not restored["missing"]
    page = (folder / "site" / "www.example.org" / "index.html").read_text("utf-8")
    assert 'href="styl.css"' in page


@pytest.mark.thorough
def test_the_demo_takes_files_of_ones_own(tmp_path: Path) -> None:
    path = warc(tmp_path / "one.warc.gz", PAGES)
    folder = tmp_path / "d"
    for _ in range(2):  # the second time it is made anew
        line = ("demo", path, "--once", "--json", "--folder", folder, "--port", "0")
        result = sheaf(*line, surround=from_environment)
        assert result.code == 0, result.err
        assert result.json["captures"] == 3
        assert result.json["harvested"] == result.json["records"] == 4  # with the collection
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "precious").touch()
    refused = sheaf("demo", path, "--once", "--folder", folder)
    assert refused.code == 2
    assert (folder / "precious").exists()
    missing = sheaf("demo", tmp_path / "no", "--once", "--folder", tmp_path / "e")
    assert missing.code == 2
    assert not (tmp_path / "e").exists()


def test_the_demo_at_a_port_that_is_taken(tmp_path: Path) -> None:
    """It says so before it does anything."""
    path = warc(tmp_path / "one.warc.gz", PAGES)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = sheaf("demo", path, "--folder", tmp_path / "d", "--port", port)
    assert result.code == 2
    assert result.err == f"sheaf: port {port} of 127.0.0.1 is in use: choose another with --port\n"
    assert not (tmp_path / "d").exists()


def test_the_demo_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    path = warc(tmp_path / "one.warc.gz", PAGES)
    command = [sys.executable, "-m", "builder", "demo", path, "--json", "--port", "0"]
    with subprocess.Popen(
        [*command, "--folder", tmp_path / "d"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        oai = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["oai"]
        with urlopen(f"{oai}?verb=Identify") as answer:
            assert b"Sheaf's demonstration" in html.unescape(answer.read().decode()).encode()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with pytest.raises(OSError):
        urlopen(oai)
