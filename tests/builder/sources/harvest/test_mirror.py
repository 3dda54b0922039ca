"""A store that replicates a repository answers in its name: what a client sees is the same."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
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
from functions.reading.duck_repository import DuckRepository
from functions.site.site import make_site
from tests.builder.sources.harvest.element import Item
from tests.builder.sources.harvest.listening import listening
from tests.builder.sources.harvest.provider import NOW, PREFIXES, Answer, Call, Provider, items
from tests.clock import CLOCK
from tests.e2e.conftest import Home, make_home, sheaf, warc
from tests.e2e.test_crowd import proxy
from tests.e2e.test_harvesters import PROGRAMS
from tests.functions.oai.validity import OAI, codes, valid
from tests.serving import serving

pytestmark = pytest.mark.shared(2)

TABLE = '[[repositories]]\nname = "a"\nurl = "{}"\nreplicate = true\n{}\n'
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


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path / "home")


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
    config = home.folder / "sheaf.toml"
    text = config.read_text().replace("# identifiers = 2000", "identifiers = 7")
    config.write_text(
        text.replace("# records = 1000", "records = 7") + TABLE.format(url, *more or ("",))
    )


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
    replicate(home, origin.url)
    publish(home, origin.url)
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
    replicate(home, origin.url)
    publish(home, origin.url)
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
    config = home.folder / "sheaf.toml"
    config.write_text(config.read_text().replace("\nlead = 5", "\nlead = 90"))
    assert home("publish").code == 0
    with home.served() as base:
        client = Sickle(base)
        with pytest.raises(BadResumptionToken):
            client.ListRecords(resumptionToken=token)
        everything = {header.identifier for header in client.ListIdentifiers(**DC)}
        assert everything == {*origin.items}
        changed = {header.identifier for header in client.ListIdentifiers(**DC, **{"from": date})}
        assert changed == {"oai:a.cz:new", "local 7", "oai:b.cz:own"}
        # As metha asks: a window of a day after the other, in days.
        days, windows = sorted({date[:10], "2020-01-01", "2100-01-01"}), set()
        for first, last in pairwise(days):
            until = (datetime.fromisoformat(last) - timedelta(days=1)).strftime("%Y-%m-%d")
            with suppress(NoRecordsMatch):
                listed = client.ListIdentifiers(**DC, **{"from": first, "until": until})
                windows |= {header.identifier for header in listed}
        assert windows == everything


@pytest.mark.parametrize("program", ["with_http_oai.pl", "with_pyoai.py", "scythe", "sheaf"])
def test_other_clients_see_the_same(home: Home, origin: Provider, program: str) -> None:
    replicate(home, origin.url)
    publish(home, origin.url)
    with served(home) as host:
        views = [
            ask(program, url, home.folder / str(number))
            for number, url in enumerate((origin.url, f"{host}/oai"))
        ]
    assert views[0] == views[1]
    assert len(views[0]) == 30


def ask(program: str, url: str, folder: Path) -> object:
    """Return what another client says of each record: identifier, deleted, sets, and its title."""
    if program == "sheaf":
        assert sheaf("harvest", url, folder).code == 0
        (own,) = folder.iterdir()
        state = folders.read(own)
        assert state is not None
        return sorted(
            (row.identifier, row.deleted, sorted(row.sets), [*row.dc.get("title", ())])
            for row in folders.rows(own, state)
        )
    if program == "scythe":
        scythe = pytest.importorskip("oaipmh_scythe")
        with scythe.Scythe(url) as client:
            return sorted(
                (
                    r.header.identifier,
                    r.header.deleted,
                    sorted(r.header.setSpecs),
                    None if r.header.deleted else r.get_metadata()["title"],
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
    command = ["perl" if program.endswith(".pl") else sys.executable, str(PROGRAMS / program), url]
    done = subprocess.run(command, input="[{}]", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (records,) = json.loads(done.stdout)["lists"]
    return sorted((name, gone, sorted(sets), title) for name, gone, sets, title in records)


def test_provenance_and_the_sets_without_records_follow_the_origin(
    home: Home, origin: Provider
) -> None:
    replicate(home, origin.url)
    publish(home, origin.url)
    config = home.folder / "sheaf.toml"
    config.write_text(config.read_text() + "provenance = true\n")
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
    replicate(home, origin.url)
    publish(home, origin.url)
    refused = home("ingest", warc(tmp_path / "a.warc.gz", {"http://a.cz/": b"a"}))
    assert refused.code == 2
    assert "replicates" in refused.err
    assert "store.uri" in refused.err
    other = Provider({item.identifier: item for item in items(3)})
    with listening(other):
        assert "replicates one repository" in publish(home, other.url, code=2)
    config = home.folder / "sheaf.toml"
    config.write_text(config.read_text().replace("replicate = true", ""))
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


@pytest.mark.parametrize("kind", ["nginx", "caddy"])
def test_a_proxy_sends_harvesters_and_landing_pages_to_the_mirror(
    home: Home, origin: Provider, tmp_path: Path, kind: str
) -> None:
    item = Item("oai:repo.example.org:17/a", NOW, "The seventeenth", ("a",))
    origin.items[item.identifier] = item
    replicate(home, origin.url)
    config = home.folder / "sheaf.toml"
    base = 'base_url = "https://repo.example.org/oai"'
    config.write_text(config.read_text().replace('# base_url = ""', base))
    publish(home, origin.url)
    expected, calls = seen(origin.url), len(origin.calls)
    with served(home) as host:
        moved = {"127.0.0.1:8080": host[7:], "127.0.0.1:9000": f"127.0.0.1:{origin.port}"}
        with proxy(kind, tmp_path, PAGE, moved) as port:
            behind(f"http://127.0.0.1:{port}", host, expected, origin)
    assert len(origin.calls) == calls + 1


def behind(address: str, host: str, expected: object, origin: Provider) -> None:
    """Look at Sheaf and the repository through a proxy."""
    assert seen(f"{address}/oai") == expected
    assert b"<baseURL>https://repo.example.org/oai<" in read(f"{address}/oai?verb=Identify")
    page = read(f"{address}/item/17/a")
    assert b"The seventeenth" in page
    assert b"stylesheet" in page
    assert read(f"{address}/style.css") == read(f"{host}/style.css")
    before = len(origin.calls)
    assert b"OAI-PMH" in read(f"{address}/elsewhere")
    assert len(origin.calls) == before + 1
