"""A small archive with a record of every kind, published three times, for the pages to show."""

import hashlib
import io
import json
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from builder.commands.demo import samples
from builder.store.context import Context, from_environment
from functions.config import configuration
from tests.clock import Clock
from tests.e2e.conftest import Home, Result, make_home, sheaf

NAMESPACE = "archiv.example.org"
LONG = "a-very-long-name-of-a-folder-without-any-blank-in-it" * 3
TITLE = "Zpráva o činnosti městské knihovny, muzea a archivu za rok 2009 včetně příloh a rejstříku"
COPY = "Vítejte v muzeu"
"""The title of the page whose archived copy is opened."""
FAR = "http://dlouhe.example.net/"
"""A host of a hundred long URLs."""
HOME, TEXT = "http://www.muzeum.example.cz/", "http://www.muzeum.example.cz/robots.txt"
PICTURE = f"{HOME}obrazky/vcela.png"
HOSTILE, TRAP = "http://www.muzeum.example.cz/past", "http://127.0.0.1:9/"
"""A page that tries to run, load, send and lead somewhere; the trap is where it does."""
_HOSTILE = """<!DOCTYPE html><html><meta charset=utf-8><title>calm</title>
<meta http-equiv=refresh content="0; url={trap}refresh"><link rel=stylesheet href="{trap}css">
<link rel=preload as=script href="{trap}preload"><base href="{trap}">
<script>document.title = "run"; fetch("{trap}fetch")</script><script src="{trap}script"></script>
<body onload="document.title = 'load'"><img src="{trap}img" onerror="document.title = 'error'">
<iframe src="{trap}frame"></iframe><iframe srcdoc="<script>top.document.title = 'up'</script>">
</iframe><object data="{trap}object"></object><embed src="{trap}embed"><video src="{trap}video">
</video><svg onload="document.title = 'svg'"><image href="{trap}svg" /></svg>
<form action="{trap}form"><button autofocus onfocus="document.title = 'focus'">go</button></form>
<a href="javascript:document.title = 'link'">link</a><style>@import "{trap}import";
body {{ background: url("{trap}background") }}</style><p>held</p>"""
_SETTINGS = {
    "repository.name": "Webový archiv města",
    "repository.admin_emails": ["archiv@example.org"],
    "repository.namespace": NAMESPACE,
    "content.serve": True,
    "documents.include": ["redirects", "errors"],
    "fileset.strategy": "s3",
    "http.host_seconds": 0,
    "http.allow_networks": ["127.0.0.0/8"],
    "identify.data_url": "https://data.example.org/archive",
    "publish.lead": 1,
    "serve.clock_allowance": 1,
    "site.imprint": "https://www.example.org/imprint",
    "site.sitemap": ["capture", "collection", "file", "fileset", "harvested", "template"],
    "sets.descriptions": {"collection:museum": "What the museum has published since 2005."},
    "sets.names": {"collection:museum": "The museum", "collection:city": "Town hall"},
}
_CRAWL = {
    "software": "Heritrix/3.4.0 http://crawler.archive.org",
    "operator": "Webový archiv města",
    "isPartOf": "muzea-2009",
    "description": "Museums of the region, harvested twice a year.",
}
_MORE = """\
Template-Type: ReDIF-Paper 1.0
Author-Name: Božena Němcová
Author-Name: Karel Čapek
Author-Name: Antoinette Wolfeschlegelsteinhausenbergerdorff
Title: On the Persistence of Very Long Titles in Bibliographic Records of Small Institutes, with
  an Appendix on Punctuation, an Index of Names and a Note on the Price of Honey
Abstract: Long titles are long. %s
Creation-Date: 2025-11
Classification-JEL: Q57, Z11
Keywords: titles; punctuation; honey
File-URL: https://www.example.org/%s/paper.pdf
File-Format: application/pdf
Handle: RePEc:lip:wpaper:2025-11

Template-Type: ReDIF-Book 1.0
Author-Name: Petr Dvořák
Title: Včely a město
Publisher-Name: Lipová
Year: 2024
Handle: RePEc:lip:wpaper:kniha
"""


@dataclass(frozen=True)
class Capture:
    """A capture to write into a WARC."""

    url: str
    date: str
    body: bytes = b""
    type: str = "text/html; charset=utf-8"
    status: str = "200 OK"
    location: str = ""


def draw(width: int, height: int) -> bytes:
    """Return an image in PNG: stripes as on a bee."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data).to_bytes(4)
        return len(data).to_bytes(4) + name + data + check

    head = width.to_bytes(4) + height.to_bytes(4) + bytes((8, 2, 0, 0, 0))
    stripe = [bytes((240, 180, 20)) * 20, bytes((40, 30, 10)) * 20]
    row = b"\0" + b"".join(stripe[n // 20 % 2] for n in range(0, width, 20))
    body = zlib.compress(row * height)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", body), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def page(title: str, text: str = "") -> bytes:
    return (
        f"<!DOCTYPE html><html lang=cs><meta charset=utf-8><title>{title}</title><p>{text}".encode()
    )


def museum() -> Iterator[Capture]:
    """Yield captures of one site over nineteen years: changed ones, redirects and errors."""
    for year in range(2005, 2024):
        for month in (1, 3, 11)[: 1 + year % 3]:
            edition = year // 3
            yield Capture(HOME, f"{year}-{month:02}-15T08:30:00Z", page(COPY, str(edition)))
    yield Capture(TEXT, "2009-05-01T00:00:00Z", b"User-agent: *\nDisallow:\n", "text/plain")
    moved = "http://www.muzeum.example.cz/uvod"
    yield Capture(HOME, "2024-02-01T00:00:00Z", b"", status="301 Moved", location=moved)
    yield Capture(HOME, "2024-03-01T00:00:00Z", page("Chyba"), status="503 Busy")
    for number in range(60):
        url = f"{HOME}sbirky/predmet-{number}.html"
        yield Capture(url, "2009-05-01T00:00:01Z", page(f"Předmět číslo {number}"))
    missing = f"{HOME}ztraceno"
    yield Capture(missing, "2009-05-01T00:00:02Z", page("Nenalezeno"), status="404 Not Found")
    yield Capture(f"{HOME}{LONG}?{'q=1&' * 40}", "2009-05-01T00:00:03Z", page(TITLE))
    yield Capture("http://katalog.muzeum.example.cz/", "2011-01-01T00:00:00Z", page("Katalog"))
    yield Capture(HOSTILE, "2009-05-01T00:00:05Z", _HOSTILE.format(trap=TRAP).encode())
    gif = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
    yield Capture(f"{HOME}logo.gif", "2009-05-01T00:00:04Z", gif, "image/gif")
    for day in (1, 2, 2, 9):
        yield Capture(PICTURE, f"2010-06-{day:02}T0{day}:00:00Z", draw(320, 200), "image/png")


def city() -> Iterator[Capture]:
    """Yield captures of another site."""
    for number in range(8):
        url = f"https://mesto.example.org/úřad/deska/{number}"
        yield Capture(url, f"2015-0{number + 1}-01T10:00:00Z", page(f"Úřední deska {number}"))
    yield Capture("https://mesto.example.org/", "2015-01-01T00:00:00Z", page(""))
    for number in range(101):
        url = f"{FAR}{LONG}/{LONG}/{LONG}/{number}"
        yield Capture(url, "2015-09-01T00:00:00Z", url.encode(), "text/plain")


def write(path: Path, captures: Iterator[Capture]) -> Path:
    """Write a WARC, with a warcinfo before and a revisit behind the captures."""
    with path.open("wb") as out:
        writer = WARCWriter(out, gzip=True)
        writer.write_record(writer.create_warcinfo_record(path.name, _CRAWL))
        for one in captures:
            headers = [("Content-Type", one.type)]
            headers += [("Location", one.location)] if one.location else []
            record = writer.create_warc_record(
                one.url,
                "response",
                io.BytesIO(one.body),
                http_headers=StatusAndHeaders(one.status, headers, "HTTP/1.1"),
                warc_headers_dict={"WARC-Date": one.date},
            )
            writer.write_record(record)
        digest = record.rec_headers.get_header("WARC-Payload-Digest")
        again = writer.create_revisit_record(
            one.url,
            digest,
            one.url,
            one.date,
            http_headers=StatusAndHeaders("200 OK", [("Content-Type", one.type)], "HTTP/1.1"),
            warc_headers_dict={"WARC-Date": "2016-06-01T00:00:00Z"},
        )
        writer.write_record(again)
    return path


def publish_captures(
    folder: Path, captures: Iterator[Capture], *withdrawn: tuple[str, ...], **settings: Any
) -> Home:
    """Return a home in which captures are published, and what options name is withdrawn since."""
    home = make_home(folder / "home")
    values = {
        "repository.name": "Archive",
        "repository.admin_emails": ["a@b.cz"],
        "repository.namespace": "b.cz",
        "documents.include": ["redirects", "errors"],
        "publish.lead": 5,
        "publish.tables": False,
    }
    home.config.write_text(configuration.template(values | settings), "utf-8")
    lines = [("ingest", str(write(home.folder / "a.warc.gz", captures))), ("publish",)]
    lines += [("withdraw", "--url-prefix", *words, "--reason", "asked") for words in withdrawn]
    for line in (*lines, ("publish",)):
        done = home(*line)
        assert done.code == 0, done.err
    return home


def add_dataset_of_one_file(web: Path) -> None:
    """Give the platform that `web` has another dataset, with a single file, of kind `file`."""
    folder = web / "api" / "records"
    shutil.copytree(folder / "hives-2024", folder / "honey-2024")
    text = (folder / "hives-2024.json").read_text("utf-8")
    record = json.loads(text.replace("hives", "honey"))
    entry = record["files"]["entries"]["README.txt"]
    record["files"] |= {"entries": {"README.txt": entry}, "count": 1, "total_bytes": entry["size"]}
    (folder / "honey-2024.json").write_text(json.dumps(record), "utf-8")


def add_picture(web: Path) -> None:
    """Give the dataset that `web` has an image, with a licence, an ORCID and a related paper."""
    folder, picture = web / "api" / "records", draw(240, 160)
    place = folder / "hives-2024" / "files" / "hive.png" / "content"
    place.parent.mkdir()
    place.write_bytes(picture)
    path = folder / "hives-2024.json"
    record = json.loads(path.read_text("utf-8"))
    entry = dict(record["files"]["entries"]["README.txt"])
    text = json.dumps(entry).replace("README.txt", "hive.png")
    digest = hashlib.md5(picture, usedforsecurity=False).hexdigest()
    entry = json.loads(text) | {"size": len(picture), "checksum": f"md5:{digest}"}
    entry |= {"mimetype": "image/png"}
    record["files"]["entries"]["hive.png"] = entry
    record["files"]["count"] += 1
    record["files"]["total_bytes"] += len(picture)
    person = record["metadata"]["creators"][0]["person_or_org"]
    person["identifiers"] = [{"scheme": "orcid", "identifier": "0000-0002-1825-0097"}]
    relation = {"identifier": "10.5072/paper", "scheme": "doi"}
    record["metadata"]["related_identifiers"] = [
        relation | {"relation_type": {"id": "issupplementto"}}
    ]
    path.write_text(json.dumps(record), "utf-8")


def write_records(folder: Path) -> tuple[Path, ...]:
    """Write records of our own: MARC of the demo, a table, and JSON."""
    table, lines = folder / "mapy.csv", folder / "fotky.jsonl"
    table.write_text(
        "id,title,creator,date,description,subject,rights\n"
        'm1,Mapa města,"Nováková, Žofie",1911,Plán s návrhem tržnice.,mapy,'
        "http://rightsstatements.org/vocab/InC/1.0/\n",
        "utf-8",
    )
    rows = [{"id": f"f{n}", "title": f"Včelín {n}", "creator": ["Dvořák, Petr"]} for n in (1, 2)]
    lines.write_text("".join(f"{json.dumps(row | {'date': '1934-05'})}\n" for row in rows), "utf-8")
    return samples.FILES / "books.mrc", table, lines


class Builder:
    """Builds the store, on three days of a clock of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder)
        folder.mkdir(parents=True)
        self.sources = folder / "sources"
        self.sources.mkdir()
        self._clock = Clock(datetime(2026, 1, 15, 9, tzinfo=UTC) - datetime.now(UTC))

    def run(self, command: str, *arguments: object) -> Result:
        def surround(given: object) -> Context:
            environment = from_environment(given).environment  # type: ignore[arg-type]
            return Context(given, environment, self._clock.now, self._clock.sleep)  # type: ignore[arg-type]

        line = (command, "--config", self.home.config, *arguments)
        result = sheaf(*line, surround=surround)
        assert result.code == 0, (line, result.err)
        return result

    def configure(self, **settings: object) -> None:
        found = {**_SETTINGS, "content.archives": [str(self.sources)], **settings}
        self.home.config.write_text(configuration.template(found), "utf-8")

    def publish(self) -> None:
        """Publish, and go on to the next month."""
        self.run("publish")
        self._clock.ahead += (datetime(2026, 2, 14) - datetime(2026, 1, 15)) / 2


def build(folder: Path, harvest_from: str) -> Home:
    """Return an archive of every kind of record, published three times.

    Records are harvested from a repository at the base URL `harvest_from`.
    """
    builder = Builder(folder)
    with ExitStack() as stack:
        web = builder.sources / "web"
        web.mkdir()
        base = stack.enter_context(samples.serve_web(web))
        samples.write_web(web, base)
        add_dataset_of_one_file(web)
        add_picture(web)
        ports = [port for port in (urlsplit(base).port, urlsplit(harvest_from).port) if port]
        builder.configure(**{"http.ports": ports})
        papers = builder.sources / "RePEc"
        samples.write_papers(papers, base)
        (papers / "lip" / "wpaper" / "more.rdf").write_text(
            _MORE % ("They wrap. " * 120, LONG), "utf-8"
        )
        builder.run("ingest", papers)
        builder.run("gather", "--again")
        warc = write(builder.sources / "museum-2009.warc.gz", museum())
        builder.run("ingest", warc, "--collection", "museum")
        for file in write_records(builder.sources):
            builder.run("ingest", file)
        builder.publish()
        builder.run(
            "ingest",
            write(builder.sources / "city.warc.gz", city()),
            "--collection",
            "city:council",
        )
        broken = builder.sources / "broken.warc.gz"
        damaged = bytearray(warc.read_bytes())
        damaged[3000:3040] = b"\0" * 40
        broken.write_bytes(bytes(damaged[:-90]))
        builder.run("ingest", broken, "--collection", "museum")
        for name in ("hives", "honey"):
            record = samples.DATASET_RECORD.replace("hives", name)
            result = builder.run("fileset", "--json", f"{base}{record}")
            assert '"success"' in result.out, result.out
        builder.run("harvest", harvest_from, builder.sources / "harvest", "--overlap", 0)
        builder.run("ingest", builder.sources / "harvest")
        builder.publish()
        samples.revise_papers(papers, base)
        builder.run("ingest", papers)
        builder.run("withdraw", "--url-prefix", f"{HOME}sbirky/predmet-7", "--reason", "asked")
        builder.publish()
    return builder.home
