"""A store that replicates a repository answers in its name: what a client sees is the same."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from html import escape, unescape
from http.client import HTTPConnection
from itertools import product
from pathlib import Path
from urllib.parse import quote, urlencode
from urllib.request import urlopen

import pytest
from lxml import etree
from sickle import Sickle
from sickle.oaiexceptions import BadResumptionToken, NoRecordsMatch

from builder.sources.harvest import folder as folders
from builder.store.folder import FolderStore
from functions.config.configuration import parse
from functions.oai.application import Application
from functions.oai.format import RAW, TEMPLATES
from functions.reading.duck_repository import DuckRepository
from functions.site.site import make_site
from tests.builder.conftest import World
from tests.builder.sources.harvest.element import Item
from tests.builder.sources.harvest.listening import listening
from tests.builder.sources.harvest.provider import (
    PREFIXES,
    SETS,
    Answer,
    Call,
    Provider,
    items,
)
from tests.clock import CLOCK
from tests.e2e.conftest import Home, sheaf, warc
from tests.e2e.test_crowd import proxy
from tests.e2e.test_harvesters import PROGRAMS
from tests.e2e.test_server import running
from tests.functions.oai.validity import OAI, codes, valid
from tests.serving import serving

pytestmark = pytest.mark.shared(2)

TABLE = '[[repositories]]\nname = "a"\nurl = "{}"\nreplicate = true\ncheck_days = 0\n{}\n'
PAGE = Path(__file__).parents[4] / "docs" / "operations" / "mirror.md"
DC = {"metadataPrefix": "oai_dc"}
RECORDS = "verb=ListRecords&metadataPrefix=oai_dc"
PREFIX = ("oai_dc", "marc21", "x-own")
OWN = ("http://a.cz/own.xsd", "urn:x-own")
DESCRIPTION = (
    '<description><x:about xmlns:x="urn:x-about">A &amp; B</x:about></description>'
    '<description><eprints xmlns="http://www.openarchives.org/OAI/1.1/eprints" xsi:schemaLocation='
    '"http://www.openarchives.org/OAI/1.1/eprints http://www.openarchives.org/OAI/1.1/eprints.xsd">'
    "<metadataPolicy/><dataPolicy/></eprints></description></Identify>"
)
ABOUT = (
    '<provenance xmlns="http://www.openarchives.org/OAI/2.0/provenance" xsi:schemaLocation='
    '"http://www.openarchives.org/OAI/2.0/provenance '
    'http://www.openarchives.org/OAI/2.0/provenance.xsd">'
    '<originDescription harvestDate="2020-01-02T03:04:05Z" altered="true">'
    "<baseURL>http://b.cz/oai</baseURL><identifier>oai:b.cz:7</identifier>"
    "<datestamp>2019-01-01</datestamp><metadataNamespace>http://b.cz/</metadataNamespace>"
    "</originDescription></provenance>"
)


def in_its_name(provider: Provider, call: Call, answer: Answer) -> Answer:
    """Give Identify a second address, descriptions and transient deletions."""
    if call.verb != "Identify":
        return answer
    body = answer.body.decode().replace("</Identify>", DESCRIPTION)
    body = body.replace("</adminEmail>", "</adminEmail><adminEmail>b@a.cz</adminEmail>")
    return replace(answer, body=body.replace(">persistent<", ">transient<").encode())


@pytest.fixture
def origin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """Items with identifiers of any kind; one prefix has metadata of a namespace not declared."""
    monkeypatch.setitem(PREFIXES, "x-own", OWN)
    own = items(30)
    names = (
        "oai:b.cz:own",
        "https://a.cz/1?a=1&b=2",
        "local 7",
        "oai:b.cz:kj2abcdefghijklmnopqrstu",
    )
    listed = [replace(item, identifier=name) for item, name in zip(own, names, strict=False)]
    listed[1] = replace(listed[1], sets=("a", "a:b"), about=ABOUT)
    provider = Provider({item.identifier: item for item in (*listed, *own[len(names) :])})
    provider.answers.append(in_its_name)
    with listening(provider):
        yield provider


@contextmanager
def served(home: Home) -> Iterator[str]:
    """Serve the store with its pages; give the address of the host."""
    values = parse((home.folder / "sheaf.toml").read_text(), {}).relative_to(home.folder)
    repository = DuckRepository(FolderStore(home.folder / "store"))
    with closing(repository):
        pages = partial(make_site, repository=repository)
        with serving(Application(repository, values, CLOCK.now, pages=pages).answer) as server:
            yield server.url


def replicate(home: Home, url: str, *more: str) -> None:
    text = home.config.read_text().replace("# identifiers = 2000", "identifiers = 7")
    text = text.replace("# records = 1000", "records = 7")
    home.config.write_text(text + TABLE.format(url, *more or ("",)))


def publish(home: Home, *urls: str, code: int = 0) -> str:
    """Harvest, ingest and publish; return what the last step says."""
    folder = home.folder / "harvests"
    many = ["--full", *(f"--prefix={prefix}" for prefix in PREFIX)]
    assert home("harvest", *urls, folder, *many).code == 0
    done = home("ingest", folder)
    if done.code == 0:
        done = home("publish")
    assert done.code == code, done.err
    return done.out + done.err


def mirror(home: Home, url: str) -> None:
    replicate(home, url)
    publish(home, url)


def read(url: str) -> bytes:
    with urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def seen(url: str) -> dict[str, object]:
    """Return what a client sees of a repository, but its dates and addresses."""
    client = Sickle(url)
    named = client.Identify()
    whole = etree.fromstring(read(f"{url}?verb=Identify"))
    view: dict[str, object] = {
        "name": named.repositoryName,
        "emails": [e.text for e in whole.iter(f"{OAI}adminEmail")],
        "deleted": named.deletedRecord,
        "descriptions": [
            etree.tostring(e[0], method="c14n", exclusive=True)
            for e in whole.iter(f"{OAI}description")
        ],
        "sets": {s.setSpec: s.setName for s in client.ListSets()},
        "formats": {
            f.metadataPrefix: (f.schema, f.metadataNamespace) for f in client.ListMetadataFormats()
        },
    }
    for prefix in PREFIX:
        view[prefix] = {
            record.header.identifier: (
                record.header.deleted,
                sorted(record.header.setSpecs),
                [
                    etree.tostring(part, method="c14n", exclusive=True)
                    for name in ("metadata", "about")
                    for part in record.xml.iterfind(f"{OAI}{name}/*")
                ],
            )
            for record in client.ListRecords(metadataPrefix=prefix)
        }
        view[f"{prefix} headers"] = {
            header.identifier: (header.deleted, sorted(header.setSpecs))
            for header in client.ListIdentifiers(metadataPrefix=prefix)
        }
    return view


def test_a_client_sees_the_same_and_the_origin_is_not_asked(home: Home, origin: Provider) -> None:
    mirror(home, origin.url)
    expected = seen(origin.url)
    asked = len(origin.calls)
    with served(home) as host:
        assert seen(f"{host}/oai") == expected
        for name, item in origin.items.items():
            for prefix in (*PREFIX, "mods"):
                query = urlencode({"identifier": name, "metadataPrefix": prefix})
                root = valid(read(f"{host}/oai?verb=GetRecord&{query}"))
                wanted = ["cannotDisseminateFormat"] if prefix == "mods" else []
                assert codes(root) == wanted
            assert (
                item.deleted
                or item.title.split("&")[0] in read(f"{host}/record?id={quote(name)}").decode()
            )
        assert b"Archive A" in read(f"{host}/sets")
        assert b"x-own" in read(f"{host}/harvest")
    assert len(origin.calls) == asked
    assert home("verify").code == 0


def test_a_switch_in_mid_harvest_loses_nothing(home: Home, origin: Provider) -> None:
    """The origin's clock is 30 seconds ahead, which publish.lead has to make up for."""
    mirror(home, origin.url)
    origin.now = (CLOCK.now() + timedelta(seconds=30)).replace(microsecond=0)
    begun = Sickle(origin.url).ListRecords(metadataPrefix="oai_dc")
    begun.next()
    token = begun.resumption_token.token
    date = begun.oai_response.xml.findtext(f"{OAI}responseDate")
    origin.change(origin.items["local 7"], title="Changed")
    origin.delete("oai:b.cz:own")
    new = Item("oai:a.cz:new", origin.now, "New", ("c",))
    origin.items[new.identifier] = new
    harvests = home.folder / "harvests"
    assert home("harvest", origin.url, harvests, "--prefix=oai_dc").code == 0
    warned = home("ingest", harvests)
    assert "seconds ahead" in warned.out
    assert "publish.lead" in warned.out
    home.config.write_text(home.config.read_text().replace("\nlead = 5", "\nlead = 90"))
    assert home("publish").code == 0
    with home.served() as base:
        client = Sickle(base)
        with pytest.raises(BadResumptionToken):
            client.ListRecords(resumptionToken=token)
        everything = {header.identifier for header in client.ListIdentifiers(**DC)}
        assert everything == {*origin.items}
        changed = {header.identifier for header in client.ListIdentifiers(**DC, **{"from": date})}
        assert changed == {"oai:a.cz:new", "local 7", "oai:b.cz:own"}
        # As metha goes on: its windows begin with the day of what it has.
        again = {identifier for identifier, *_ in walk_months(base, date[:10])}
        assert changed <= again <= everything


def walk_months(url: str, first: str = "") -> Iterator[tuple[str, bool, list[str], bytes]]:
    """Yield records as metha asks for them: each month of its own, in days, and every token."""
    client = Sickle(url)
    begin = datetime.fromisoformat((first or client.Identify().earliestDatestamp)[:10])
    while begin.date() <= CLOCK.now().date() + timedelta(days=1):
        following = (begin.replace(day=1) + timedelta(days=32)).replace(day=1)
        dates = {"from": f"{begin:%Y-%m-%d}", "until": f"{following - timedelta(days=1):%Y-%m-%d}"}
        with suppress(NoRecordsMatch):
            for record in client.ListRecords(**DC, **dates):
                header, parts = record.header, record.xml.iterfind(f"{OAI}metadata/*")
                text = b"".join(etree.tostring(e, method="c14n", exclusive=True) for e in parts)
                yield header.identifier, header.deleted, sorted(header.setSpecs), text
        begin = following


@pytest.mark.parametrize(
    "program", ["with_http_oai.pl", "with_pyoai.py", "scythe", "metha", "sheaf"]
)
def test_other_clients_see_the_same(home: Home, origin: Provider, program: str) -> None:
    mirror(home, origin.url)
    with served(home) as host:
        views = [
            ask(program, url, home.folder / str(number))
            for number, url in enumerate((origin.url, f"{host}/oai"))
        ]
    assert views[0] == views[1]
    assert len(views[0]) == 30


def ask(program: str, url: str, folder: Path) -> object:
    """Return what another client says of each record: identifier, deleted, sets, and metadata."""
    if program == "sheaf":
        assert sheaf("harvest", url, folder).code == 0
        (own,) = folder.iterdir()
        state = folders.read(own)
        assert state is not None
        return sorted(
            (row.identifier, row.deleted, sorted(row.sets), sorted(row.dc.items()))
            for row in folders.rows(own, state)
        )
    if program == "metha":
        return sorted(walk_months(url))
    if program == "scythe":
        scythe = pytest.importorskip("oaipmh_scythe")
        with scythe.Scythe(url) as client:
            return sorted(
                (
                    r.header.identifier,
                    r.header.deleted,
                    sorted(r.header.setSpecs),
                    [] if r.header.deleted else sorted(r.get_metadata().items()),
                )
                for r in client.list_records(metadata_prefix="oai_dc")
            )
    if (
        program.endswith(".pl")
        and subprocess.run(["perl", "-MHTTP::OAI", "-e1"], capture_output=True).returncode
    ):
        pytest.skip("HTTP::OAI is not installed: `make clients`")
    if program.endswith(".py"):
        pytest.importorskip("oaipmh", reason="oaipmh of PyPI is not installed")
    command = [
        "perl" if program.endswith(".pl") else sys.executable,
        str(PROGRAMS / program),
        url,
        "all",
    ]
    done = subprocess.run(command, input="[{}]", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (records,) = json.loads(done.stdout)["lists"]
    return sorted(
        (name, gone, sorted(sets), sorted((dc or {}).items())) for name, gone, sets, dc in records
    )


def test_provenance_and_the_sets_without_records_follow_the_origin(
    home: Home, origin: Provider
) -> None:
    mirror(home, origin.url)
    home.config.write_text(home.config.read_text() + "provenance = true\n")
    origin.answers.append(
        lambda provider, call, answer: replace(
            answer, body=answer.body.replace(b"The first set", b"Renamed")
        )
    )
    publish(home, origin.url)
    with home.served() as base:
        text = read(f"{base}?{RECORDS}")
        assert valid(text) is not None
        assert origin.url.encode() in text
        assert b"<setName>Renamed</setName>" in read(f"{base}?verb=ListSets")
        assert codes(valid(read(f"{base}?{RECORDS}&set=zz"))) == ["noRecordsMatch"]


def test_a_store_replicates_one_repository_and_nothing_else(
    home: Home, origin: Provider, tmp_path: Path
) -> None:
    mirror(home, origin.url)
    refused = home("ingest", warc(tmp_path / "a.warc.gz", {"http://a.cz/": b"a"}))
    assert refused.code == 2
    assert "replicates" in refused.err
    assert "store.uri" in refused.err
    other = Provider({item.identifier: item for item in items(3)})
    with listening(other):
        assert "replicates one repository" in publish(home, other.url, code=2)
    home.config.write_text(home.config.read_text().replace("replicate = true", ""))
    assert "replicate = true" in publish(home, origin.url, code=2)


def test_an_aggregation_does_not_become_a_mirror(home: Home, origin: Provider) -> None:
    publish(home, origin.url)
    replicate(home, origin.url)
    asked = len(origin.calls)
    refused = home("ingest", home.folder / "harvests")
    assert refused.code == 2
    assert "30 items under other identifiers" in refused.err
    again = home("ingest", "--store", home.folder / "mirror", home.folder / "harvests")
    assert again.code == 0, again.err
    assert home("publish", "--store", home.folder / "mirror").code == 0
    assert len(origin.calls) == asked


def test_many_sets_are_listed_without_a_place_in_the_manifest(
    home: Home, origin: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "s" * 200
    more = {f"{long}:{n:05}": f"Name {n} & more" for n in range(3000)}
    monkeypatch.setattr("tests.builder.sources.harvest.provider.SETS", {**SETS, **more})
    mirror(home, origin.url)
    expected = {s.setSpec: s.setName for s in Sickle(origin.url).ListSets()}
    with home.served() as base:
        assert {s.setSpec: s.setName for s in Sickle(base).ListSets()} == expected
    store = World(home.folder / "store")
    assert (store.root / store.newest().key).stat().st_size < 100_000
    monkeypatch.setattr("tests.builder.sources.harvest.provider.SETS", SETS)
    publish(home, origin.url)
    with home.served() as base:
        assert {s.setSpec: s.setName for s in Sickle(base).ListSets()} == SETS
    assert home("verify").code == 0


def test_a_list_of_sets_that_breaks_off_takes_no_set_away(
    home: Home, origin: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each night asks for all sets of the origin; the next whole list counts again."""
    monkeypatch.setenv("SHEAF_HTTP_TRIES", "1")
    replicate(home, origin.url)
    assert home("update").code == 0

    def break_off(provider: Provider, call: Call, answer: Answer) -> Answer:
        if call.verb != "ListSets":
            return answer
        first, *_ = answer.body.partition(b"</set>")
        token = b"<resumptionToken>more</resumptionToken></ListSets></OAI-PMH>"
        is_first = "resumptionToken" not in call.arguments
        return replace(answer, body=first + b"</set>" + token, status=200 if is_first else 500)

    origin.answers.append(break_off)
    origin.change(origin.items["local 7"], title="Changed")
    assert home("update").code == 0
    with home.served() as base:
        assert {s.setSpec: s.setName for s in Sickle(base).ListSets()} == SETS


def test_formats_without_a_row_have_a_digest(
    home: Home, origin: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of the template gives their records new datestamps."""
    mirror(home, origin.url)
    making = World(home.folder / "store").newest().formats
    assert making.keys() >= {*PREFIX}
    assert (making["x-own"].digest != "", making["x-own"].since) == (True, None)
    own = home.folder / "own"
    (own / "crosswalks").mkdir(parents=True)
    text = (TEMPLATES / "crosswalks" / RAW).read_text()
    (own / "crosswalks" / RAW).write_text(f"{text}\n<!-- -->")
    config = home.config.read_text()
    home.config.write_text(config.replace('# templates = ""', f'templates = "{own}"'))
    assert "the XML of x-own has changed" in publish(home, origin.url)


@pytest.mark.shared(1)
@pytest.mark.parametrize("kind", ["nginx", "caddy"])
@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_no_request_for_a_list_or_a_page_reaches_a_slow_origin(
    home: Home, tmp_path: Path, kind: str, count: int
) -> None:
    """All are sent to the origin's own addresses, which the proxy gives to `sheaf serve`."""
    own = {
        item.identifier: item
        for number, old in enumerate(items(60))
        for item in [replace(old, identifier=f"oai:repo.example.org:{number}/{number % 7}")]
    }
    provider = Provider(own)
    provider.answers.append(lambda p, call, answer: replace(answer, pause=p.hang))
    with listening(provider):
        replicate(home, provider.url)
        base = 'base_url = "https://repo.example.org/oai"'
        home.config.write_text(home.config.read_text().replace('# base_url = ""', base))
        provider.hang = 0.05
        assert home("update").code == 0
        provider.hang = 60
        calls = len(provider.calls)
        with running(home) as (url, *_):
            host = url.removeprefix("http://").removesuffix("/oai")
            (rules,) = re.findall(rf"```{kind}\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)
            moved = {"127.0.0.1:8080": host, "127.0.0.1:9000": f"127.0.0.1:{provider.port}"}
            with (
                proxy(kind, tmp_path, rules, moved) as port,
                closing(HTTPConnection("127.0.0.1", port, timeout=50)) as connection,
            ):
                seen = send_requests(connection, own, count)
                address = f"http://127.0.0.1:{port}"
                assert read(f"{address}/style.css") == read(f"http://{host}/style.css")
                answer = read(f"{address}/oai?verb=Identify")
                assert b"<baseURL>https://repo.example.org/oai<" in answer
                assert len(provider.calls) == calls
                provider.hang = 0
                assert b"OAI-PMH" in read(f"{address}/elsewhere")  # this is the origin's
        assert len(provider.calls) == calls + 1
    lists = {"ListIdentifiers", "ListRecords", "ListSets", "ListMetadataFormats", "Identify"}
    assert seen == {*lists, "token", "GetRecord", "item"}


def send_requests(connection: HTTPConnection, own: dict[str, Item], count: int) -> set[str]:
    """Send so many requests, look at each answer, and return the verbs and paths."""
    dates = ("", "&from=2000-01-01", "&until=2099-01-01", "&from=2026-01-01&until=2099-12-31")
    verbs, sets = ("ListIdentifiers", "ListRecords"), ("", "&set=a", "&set=a:b", "&set=c")
    lists = [f"{v}&metadataPrefix=oai_dc{s}{d}" for v, s, d in product(verbs, sets, dates)]
    lists += ["Identify", "ListSets", "ListMetadataFormats"] * 4
    chance, seen, query = random.Random(44), set[str](), ""
    for _ in range(count):
        item, wanted = chance.choice([*own.values()]), b"</OAI-PMH>"
        words = escape(item.title[:8]).encode()
        choice = 0.0 if query else chance.random()
        if choice < 0.4:
            query = query or chance.choice(lists)
        elif choice < 0.7:
            query = f"GetRecord&identifier={item.identifier}&metadataPrefix=oai_dc"
            wanted = b'status="deleted"' if item.deleted else words
        else:
            wanted = b"deleted" if item.deleted else words
        target = f"/oai?verb={query}" if query else f"/item/{item.identifier.split(':')[-1]}"
        connection.request("GET", target)
        answer = connection.getresponse()
        body = answer.read()
        status = 410 if item.deleted and not query else 200  # the page of a tombstone
        assert (answer.status, wanted in body, b"<error" in body) == (status, True, False), target
        verb = query.split("&")[0]
        seen.add(verb or "item")
        token = re.search(rb"<resumptionToken[^>]*>([^<]+)<", body)
        query = (
            f"{verb}&{urlencode({'resumptionToken': unescape(token[1].decode())})}" if token else ""
        )
        if token:
            seen.add("token")
    return seen
