"""Each host of a site answers as `sheaf serve` does over the same store."""

import gzip
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from lxml import etree

from builder.serve.routers import GUARD, PAGES
from builder.serve.site_folder import SiteFolder
from tests.builder.conftest import World, capture
from tests.builder.outputs.site.harvest import Folder, Record, read_records
from tests.builder.serve.site_requests import (
    BAD_TOKENS,
    OAI,
    Ask,
    application_of,
    ask_application,
    ask_server,
    differences,
    make_requests,
    see,
)
from tests.builder.serve.site_world import SETTINGS, make_site_world
from tests.builder.serve.test_site_folder import SECRETS
from tests.hosts import hosts
from tests.hosts.hosts import HOSTS, REQUESTS

LIST = "verb=ListRecords&metadataPrefix=oai_dc"
ARCHIVED = {
    "20200101000000/a.html": "text/html",
    "in/20200101000000/a-if_.html": "text/html",
    "in/20200101000000/a-im_.png": "image/png",
    "in/20200101000000/a-im_.svg": "image/svg+xml",
    "in/20200101000000/a-cs_.css": "text/css",
    "timemap/link/http:/a.cz/b.html.link": "application/link-format",
    "timemap/link/http:/a.cz/b/index.link": "application/link-format",
}
"""Files of archived pages, as `site.replay` writes them, with their types."""


@dataclass
class Host:
    """A host that runs: its name, address, and how to ask it."""

    name: str
    url: str
    ask: Ask


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Give a folder that servers read as another user; other runs of pytest close its own."""
    with tempfile.TemporaryDirectory(prefix="sheaf-hosts-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def world(folder: Path) -> Iterator[World]:
    world = make_site_world(folder)
    folder = world.root / "site/www/sets"  # /sets is a page beside it
    folder.mkdir(exist_ok=True)
    (folder / "set=a b:c.html").write_text("<title>")
    for name in ARCHIVED:
        path = world.root / "site/www/web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"<a/>")
    yield world
    world.close()


@pytest.fixture(scope="module")
def ours(world: World) -> Ask:
    return application_of(world)


@pytest.fixture(scope="module", params=HOSTS)
def host(request: pytest.FixtureRequest, world: World, folder: Path) -> Iterator[Host]:
    start: Any = HOSTS[request.param]
    own = Path(tempfile.mkdtemp(dir=folder))
    own.chmod(0o755)
    with start(world.root / "site", own) as url:
        yield Host(request.param, url, ask_server(url))


def test_random_requests_give_what_the_server_gives(world: World, ours: Ask, host: Host) -> None:
    maker = make_requests(world, 46)
    found = differences(ours, host.ask, maker, REQUESTS)
    assert not found, f"{len(found)}: " + "\n".join(found[:5])


def test_a_token_goes_on_where_the_folder_does(world: World, host: Host) -> None:
    """Tokens of any page that was or will be: hosts continue them at the same page."""
    folder = ask_application(SiteFolder(world.root / "site"), host.url + "/oai")
    pick = random.Random(46)
    maker = make_requests(world, 46)
    for _ in range(REQUESTS // 5):
        letter = pick.choice("ri")
        parts = [letter, pick.choice(maker.prefixes[:6]), str(pick.randint(0, 40))]
        parts += pick.choice(([], [pick.choice(maker.sets)], [pick.choice(["", *maker.sets])]))
        if len(parts) > 3 and pick.random() < 0.5:
            parts.append(pick.choice(maker.dates[:6]))
        verb = "ListRecords" if letter == "r" else "ListIdentifiers"
        query = f"verb={verb}&resumptionToken={quote(','.join(parts))}"
        expected, seen = see(folder, "GET", query, {}, b""), see(host.ask, "GET", query, {}, b"")
        assert (seen.codes, seen.items) == (expected.codes, expected.items), query


@pytest.mark.parametrize("name", [name for name in HOSTS if name != "worker"])
def test_harvests_of_sets_go_on_through_publishes(folder: Path, name: str) -> None:
    """Small, dense and scattered sets; what changed, left or was withdrawn comes once more."""
    own = Path(tempfile.mkdtemp(dir=folder))
    (own / "host").mkdir()
    own.chmod(0o755)
    world, start = make_site_world(own), cast(Any, HOSTS[name])
    with start(world.root / "site", own / "host") as url:
        ask, sets = ask_server(url), make_requests(world, 1).sets[:8]
        lists = {spec: f"verb=ListRecords&metadataPrefix=oai_dc&set={spec}" for spec in sets}
        states: dict[str, dict[str, bytes]] = {spec: {} for spec in sets}
        queries, dates = dict(lists), dict.fromkeys(sets, "")

        def read(spec: str) -> bool:
            """Read a page; return whether a list has ended. The next begins at its date."""
            root = etree.fromstring(ask("GET", queries[spec], {}, b"").body)
            if "resumptionToken" not in queries[spec]:
                dates[spec] = root.findtext(f"{OAI}responseDate") or ""
            for record in root.iter(f"{OAI}record"):
                key = record.findtext(f"{OAI}header/{OAI}identifier") or ""
                record.tail = None
                states[spec][key] = etree.tostring(record, method="c14n")
            token = root.findtext(f"{OAI}ListRecords/{OAI}resumptionToken")
            queries[spec] = f"{lists[spec]}&from={dates[spec]}"
            if token:
                queries[spec] = f"verb=ListRecords&resumptionToken={quote(token)}"
            return not token

        for number in range(3):
            for spec in sets:
                read(spec)
            moved = capture(number + 8, title=f"t{number}", sets=("mime:a", "domain:cz:example:h3"))
            world.add([capture(number * 2, title=f"t{number}"), moved], **SETTINGS)
            world.clock.sleep(3600)
            if number % 2:
                world.withdraw(f"oai:archive.example.org:{capture(number).identity}", **SETTINGS)
                world.clock.sleep(3600)
        ours = application_of(world)
        for spec in sets:
            for _ in range(2):  # what has begun, and what is new since then
                while not read(spec):
                    pass
            assert {*states[spec].values()} == {*see(ours, "GET", lists[spec], {}, b"").items}
    world.close()


@pytest.mark.parametrize(("item", "prefix"), [("2", "x"), ("3", "y"), ("1", "x"), ("1", "y")])
def test_a_record_within_metadata_is_no_record(
    ours: Ask, host: Host, item: str, prefix: str
) -> None:
    query = f"verb=GetRecord&identifier=oai:arXiv:{item}&metadataPrefix={prefix}"
    expected, seen = see(ours, "GET", query, {}, b""), see(host.ask, "GET", query, {}, b"")
    assert (seen.codes, seen.items) == (expected.codes, expected.items)
    assert bool(seen.items) == (item == "1")


@pytest.mark.parametrize("token", BAD_TOKENS)
def test_a_crafted_token_is_refused(ours: Ask, host: Host, token: str) -> None:
    for verb in ("ListRecords", "ListIdentifiers", "ListSets"):
        request = ("GET", f"verb={verb}&resumptionToken={quote(token, safe='')}", {}, b"")
        assert set(see(host.ask, *request).codes) <= {"badResumptionToken", "badArgument"}


@pytest.mark.parametrize("query", [LIST, "verb=Identify", "verb=x", "resumptionToken"])
def test_headers_are_those_of_the_server(ours: Ask, host: Host, query: str, world: World) -> None:
    if query == "resumptionToken":
        query = "verb=ListRecords&resumptionToken=r,oai_dc,5"
    expected = ours("GET", LIST, {"accept-encoding": "gzip"}, b"").headers
    whole = host.ask("GET", query, {"accept-encoding": "gzip"}, b"")
    for name in ("content-type", "access-control-allow-origin", "access-control-expose-headers"):
        assert whole.headers[name] == expected[name], name
    assert "no-cache" in whole.headers["cache-control"]
    if not host.name.startswith("worker"):  # Cloudflare compresses what it sends
        assert whole.headers["content-encoding"] == "gzip"
    head = host.ask("HEAD", query, {}, b"")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


def test_a_page_that_is_held_is_not_sent_again(host: Host) -> None:
    for query in (LIST, "verb=ListRecords&resumptionToken=r,oai_dc,5"):
        tag = host.ask("GET", query, {}, b"").headers.get("etag")
        if host.name == "caddy" and query == LIST:
            continue  # what a template makes has none
        assert tag is not None
        held = host.ask("GET", query, {"if-none-match": tag}, b"")
        assert (held.status, held.body) == (304, b"")


def test_other_methods_are_refused(host: Host) -> None:
    for method in ("PUT", "DELETE"):
        answer = host.ask(method, "verb=Identify", {}, b"")
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("path", [path for path in SECRETS if "%00" not in path])
def test_nothing_is_given_away_but_answers_and_pages(host: Host, path: str, world: World) -> None:
    answer = ask_server(host.url, path)("GET", "", {}, b"")
    assert answer.status in (400, 403, 404)


def test_pages_for_people_are_served_beside(host: Host) -> None:
    for path in ("/", "/sets", "/sets/set=a%20b:c"):
        answer = ask_server(host.url, path)("GET", "", {}, b"")
        assert answer.status == 200, path
        assert b"<title>" in answer.body
        assert answer.headers["content-type"].startswith("text/html")
    kind = ask_server(host.url, "/publishes.atom")("GET", "", {}, b"").headers["content-type"]
    assert "xml" in kind
    table = ask_server(host.url, "/months.csv")("GET", "", {}, b"")
    assert table.headers["content-type"].startswith("text/csv")
    assert table.body.startswith(b"month,captures,bytes")


def test_each_page_of_the_site_has_its_address(host: Host, world: World) -> None:
    pages = world.root / "site/www"
    files = [path for path in pages.rglob("*") if path.is_file() and path.suffix != ".gz"]
    assert len(files) > 20
    for path in files:
        name = path.relative_to(pages).as_posix()
        name = name if name.startswith("web/") else name.removesuffix(".html")
        answer = ask_server(host.url, "/" + quote(name))(
            "GET", "", {"accept-encoding": "gzip"}, b""
        )
        assert (answer.status, answer.body) == (200, path.read_bytes()), name


def test_archived_pages_have_their_types_and_policies(host: Host) -> None:
    for name, kind in ARCHIVED.items():
        answer = ask_server(host.url, f"/web/{name}")("GET", "", {}, b"")
        assert answer.status == 200, name
        assert answer.headers["content-type"].partition(";")[0] == kind
        guard = GUARD if name.startswith("in/") else PAGES
        for header, value in guard.items():
            assert answer.headers[header.lower()] == value, (name, header)
        assert answer.headers["access-control-allow-origin"] == "*"


def test_a_timemap_is_that_of_its_url(host: Host) -> None:
    for url, status in (("b.html", 200), ("b/", 200), ("b.html?x=1", 404), ("c", 404)):
        path, _, query = f"/web/timemap/link/http://a.cz/{url}".partition("?")
        assert ask_server(host.url, path)("GET", query, {}, b"").status == status, url


def test_pages_of_tokens_are_files_as_they_are(host: Host, world: World) -> None:
    page = world.root / "site/oai/oai_dc/r/all/5.xml"
    texts = [f"resumptionToken=r{comma}oai_dc{comma}5" for comma in (",", "%2C")]
    queries = [f"verb=ListRecords&{text}" for text in texts]
    queries += [f"{text}&verb=ListRecords" for text in texts]  # as sickle writes it
    for query in queries:
        whole = host.ask("GET", query, {}, b"")
        assert whole.body == page.read_bytes()
        assert "etag" in whole.headers  # a template of Caddy gives none
        assert host.ask("GET", query, {"accept-encoding": "gzip"}, b"").body == gzip.decompress(
            page.with_name("5.xml.gz").read_bytes()
        )


@pytest.mark.parametrize("name", [name for name in HOSTS if name != "worker"])
def test_a_harvest_during_publishes_and_a_day_of_expiry_loses_nothing(
    name: str, folder: Path
) -> None:
    own = Path(tempfile.mkdtemp(dir=folder))
    own.chmod(0o755)
    world = World(own / "store")
    world.add([capture(number) for number in range(24)], **SETTINGS)
    state: dict[str, Record] = {}
    begin = date = token = ""
    start: Any = HOSTS[name]
    with start(world.root / "site", own) as url:
        for step in range(60):
            query = f"verb=ListRecords&resumptionToken={token}" if token else LIST + begin
            root = etree.fromstring(ask_server(url)("GET", query, {}, b"").body)
            state |= {record[0]: record for record in read_records(root)}
            date = date or root.findtext(f"{OAI}responseDate") or ""
            token = root.findtext(f"{OAI}*/{OAI}resumptionToken") or ""
            assert token or not root.findall(f"{OAI}error") or begin
            if not token:
                begin, date = f"&from={date}", ""
            if step < 8:
                world.clock.sleep(40_000)  # what is superseded goes after a few publishes
                some = (step, step + 8, 30 + step)
                world.add([capture(n, title=f"new {step}") for n in some], **SETTINGS)
            elif root.find(f"{OAI}error") is not None:
                break
        else:
            raise AssertionError("no harvest was without anything new")
    world.close()
    assert state == {r[0]: r for r in Folder(world.root / "site").harvest("r", "oai_dc")}


def test_a_cloudfront_function_answers_what_files_can(
    world: World, ours: Ask, tmp_path: Path
) -> None:
    maker = make_requests(world, 46, posts=False)
    maker.sets[:] = [""]
    newest = [date for date in maker.dates if date >= "2026-01-02T01:01:08Z"]
    with hosts.cloudfront(world.root / "site", tmp_path) as url:
        ask = ask_server(url)
        assert ask("POST", "verb=Identify", {}, b"").status == 405
        missing = ("GET", "verb=ListRecords&resumptionToken=r,oai_dc,6", {}, b"")
        assert "badResumptionToken" in see(ask, *missing).codes
        checked = 0
        for _ in range(REQUESTS):
            pairs = maker.pairs()
            values = dict(pairs)
            if values.keys() & {"identifier", "set", "resumptionToken"}:
                continue
            if values.get("until", newest[0]) not in newest:
                continue
            method, query, headers, body = maker.write(pairs)
            expected, seen = (
                see(ours, method, query, headers, body),
                see(ask, method, query, headers, body),
            )
            assert (seen.codes, seen.items, seen.status) == (
                expected.codes,
                expected.items,
                expected.status,
            ), query
            checked += 1
        assert checked > REQUESTS / 10
