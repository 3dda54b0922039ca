"""One look-up: records, indexes, bytes, replay and search, beside `oaipmh` and pywb.

    python -m bench.lookup [--captures N] [--requests N] [--rounds N] [--folder FOLDER]
        [--clients N] [--pywb ENVIRONMENT] [--only WORD]

A crawl of small pages, 100 of each host, and some large ones is ingested and published. The same
captures are in SQLite (see bench.baseline), and in a flat CDXJ and a ZipNum of pywb. Each request
asks one server of one process for a random capture, which no earlier request asked for (of the
large ones there are few), over a connection that stays. Figures are CPU of the server's processes,
medians of rounds in which all servers take turns, and the times of requests by one client, then by
many at once. The clients share the processors. `--folder` keeps what was made, and the next run
begins from there. `--only` measures what has that word in its first column.

pywb is no dependency: it runs from the virtual environment at `--pywb` (`make clients` makes
.venv-pywb), and is left out where it is not. Its indexes are asked through `warcserver`, which is
its fastest way, and its bytes through `wayback` with `id_`.
"""

import argparse
import gzip
import hashlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b32encode
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path
from urllib.parse import quote, urlsplit

from isal import isal_zlib

from bench import baseline
from bench.harvest import rows
from bench.server import CONFIGURATION, NAMESPACE, Server, gunicorn, sheaf, started
from builder.store.folder import FolderStore
from functions.reading.duck_repository import DuckRepository
from functions.snapshot import oai_name
from tests.listening import free_port

_OF_HOST = 100
"""Captures of a host."""
_OF_FILE = 50_000
"""Captures of an archive file."""
_OF_BLOCK = 3000
"""Lines of a block of ZipNum, as in the Internet Archive's and Common Crawl's."""
_WORDS = "archive capture header index library memento page prefix record snapshot".split()  # noqa: SIM905
_START = datetime(2008, 4, 30, tzinfo=UTC)
_LARGE = 32
"""How many captures are large pages of tables and links, at most one of ten."""
_LINKS = 6000
_WARM = 10
"""Requests before the first round, which are not counted."""


@dataclass(frozen=True)
class Page:
    """A generated capture, the same for the same number."""

    number: int
    hosts: int

    @property
    def host(self) -> str:
        """The host; neighbours in a crawl are of different ones."""
        return f"h{self.number % self.hosts}.example.org"

    @property
    def path(self) -> str:
        """The path; those of a host differ."""
        return f"/{_WORDS[self.number % len(_WORDS)]}/{self.number}.html"

    @property
    def url(self) -> str:
        """The address."""
        return f"http://{self.host}{self.path}"

    @property
    def surt(self) -> str:
        """The address in the order of an index."""
        return ",".join(reversed(self.host.split("."))) + f"){self.path}"

    @property
    def date(self) -> datetime:
        """The time of the capture."""
        return _START + timedelta(seconds=self.number)

    @property
    def is_large(self) -> bool:
        """Whether it is one of the large ones."""
        return self.number < min(_LARGE, self.hosts * _OF_HOST // 10)

    @property
    def body(self) -> bytes:
        """The payload: a small page, or 0.6 MB."""
        draw = random.Random(self.number)
        if self.is_large:
            row = '<tr class="row"><td>{}<td width="9"><a class="link" href="/{}/{}.html">{}</a>\n'
            rows = (row.format(n, draw.choice(_WORDS), n, n) for n in range(_LINKS))
            return f"<html><title>{self.number}</title><table>{''.join(rows)}</html>\n".encode()
        words = " ".join(draw.choices(_WORDS, k=200))
        return f"<html><title>{self.number}</title><p>{words}</p></html>\n".encode()

    @property
    def digest(self) -> str:
        """The digest of the payload, as archives have it."""
        return b32encode(hashlib.sha1(self.body).digest()).decode()

    @property
    def identifier(self) -> str:
        """The identifier of the record."""
        date = f"{self.date:%Y-%m-%dT%H:%M:%SZ}"
        local = oai_name.capture_identity(self.url.encode(), date, 200, self.digest)
        return oai_name.to_oai(NAMESPACE, local)

    def record(self) -> bytes:
        """Return the capture as a record of an archive file, a member of gzip."""
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        block += b"Content-Length: %d\r\n\r\n%b" % (len(self.body), self.body)
        head = (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {self.url}\r\n"
            f"WARC-Date: {self.date:%Y-%m-%dT%H:%M:%SZ}\r\n"
            f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{self.number:012}>\r\n"
            f"WARC-Payload-Digest: sha1:{self.digest}\r\n"
            f"Content-Type: application/http; msgtype=response\r\n"
            f"Content-Length: {len(block)}\r\n\r\n"
        )
        member: bytes = isal_zlib.compress(head.encode() + block + b"\r\n\r\n", 2, 31)
        return member

    def line(self, file: str, offset: int, length: int) -> str:
        """Return the capture as a line of CDXJ."""
        return (
            f'{self.surt} {self.date:%Y%m%d%H%M%S} {{"url": "{self.url}", "mime": "text/html", '
            f'"status": "200", "digest": "{self.digest}", "length": "{length}", '
            f'"offset": "{offset}", "filename": "{file}"}}\n'
        )


def make(folder: Path, pages: Sequence[Page]) -> None:
    """Make the archives, their indexes, the store and the database in a folder."""
    (folder / "warcs").mkdir(parents=True)
    lines = []
    for first in range(0, len(pages), _OF_FILE):
        name = f"crawl-{first // _OF_FILE:05}.warc.gz"
        with (folder / "warcs" / name).open("wb") as file:
            for page in pages[first : first + _OF_FILE]:
                offset = file.tell()
                file.write(page.record())
                lines.append(page.line(name, offset, file.tell() - offset))
    lines.sort()
    (folder / "index.cdxj").write_text("".join(lines))
    _write_blocks(folder, lines)
    (folder / "sheaf.toml").write_text(CONFIGURATION)
    for command in (("ingest", str(folder / "warcs")), ("publish",)):
        line = [sys.executable, "-m", "builder", *command, "--store", str(folder / "store")]
        subprocess.run(
            [*line, "--config", str(folder / "sheaf.toml")], check=True, stdout=subprocess.DEVNULL
        )
    repository = DuckRepository(FolderStore(folder / "store"))
    newest = repository.pointer().newest()
    assert newest is not None
    manifest = repository.manifest(newest.snapshot)
    assert manifest.kinds()["capture"] == len(pages)
    baseline.fill(folder / "baseline.sqlite", rows(repository, manifest, len(pages)))
    repository.close()


def _write_blocks(folder: Path, lines: Sequence[str]) -> None:
    """Write the lines as a ZipNum: blocks of gzip, and the first line of each."""
    (folder / "zipnum").mkdir()
    summary, offset = [], 0
    with (folder / "zipnum" / "part.cdx.gz").open("wb") as file:
        for number, first in enumerate(range(0, len(lines), _OF_BLOCK), 1):
            block = gzip.compress("".join(lines[first : first + _OF_BLOCK]).encode(), mtime=0)
            key = " ".join(lines[first].split(" ", 2)[:2])
            summary.append(f"{key}\tpart\t{offset}\t{len(block)}\t{number}\n")
            offset += file.write(block)
    (folder / "zipnum" / "index.idx").write_text("".join(summary))
    (folder / "zipnum" / "index.loc").write_text("part\tpart.cdx.gz\n")


@dataclass
class LookUp:
    """A kind of request to a server: `target` is its path and query for a page.

    `proof` is in each answer, `count` times (0: at least once). `costs` and `times` are the
    milliseconds of CPU and of waiting, the times by the number of clients.
    """

    name: str
    by: str
    server: Server
    target: Callable[[Page], str]
    proof: Callable[[Page], bytes]
    count: int = 1
    is_large: bool = False
    costs: list[float] = field(default_factory=list)
    times: dict[int, list[float]] = field(default_factory=dict)

    def ask(self, pages: Sequence[Page], clients: int = 1) -> None:
        """Ask for pages by so many clients, and note costs and times."""
        before = self.server.cpu()
        with ThreadPoolExecutor(clients) as pool:
            times = [*pool.map(self._follow, (pages[n::clients] for n in range(clients)))]
        if clients == 1:
            self.costs.append((self.server.cpu() - before) * 1000 / len(pages))
        self.times.setdefault(clients, []).extend(chain.from_iterable(times))

    def _follow(self, pages: Sequence[Page]) -> list[float]:
        connection = HTTPConnection(urlsplit(self.server.url).netloc)
        connection.connect()
        times = []
        for page in pages:
            begun = time.perf_counter()
            connection.request("GET", self.target(page))
            # An answer in two parts would wait 40 ms for the acknowledgement of the first.
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            answer = connection.getresponse()
            body = answer.read()
            times.append((time.perf_counter() - begun) * 1000)
            assert answer.status == 200, (self.name, self.by, answer.status, body[:300])
            count = body.count(self.proof(page))
            assert count == self.count or count > self.count == 0, (self.name, self.by, body[:300])
        connection.close()
        return times

    def show(self, first: "LookUp") -> str:
        """Return its line of the table, beside the first of the same requests."""
        cost = statistics.median(self.costs)
        ratio = cost / statistics.median(first.costs)
        cells = [self.name, self.by, f"{cost:.2f}", f"{ratio:.2f}"]
        for times in self.times.values():
            many = times if len(times) > 1 else 2 * times  # of one request, each part is its time
            parts = statistics.quantiles(many, n=100, method="inclusive")
            cells += (f"{parts[49]:.1f}", f"{parts[98]:.1f}")
        return f"| {' | '.join(cells)} |"


def sheaf_ways(server: Server) -> Iterator[LookUp]:
    """Yield the look-ups of Sheaf."""
    record = "/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier="
    of_host = "/cdx?matchType=prefix&url="
    yield LookUp("GetRecord", "sheaf serve", server, lambda p: record + p.identifier, _url)
    yield LookUp("/cdx, exact", "sheaf serve", server, lambda p: f"/cdx?url={quote(p.url)}", _url)
    yield LookUp(
        "/cdx, prefix", "sheaf serve", server, lambda p: of_host + quote(p.host), _host, _OF_HOST
    )
    yield LookUp("/content", "sheaf serve", server, lambda p: f"/content/{p.identifier}", _body)
    yield from replay_ways("sheaf serve", server, "/web", "if_")
    yield LookUp("search", "sheaf serve", server, lambda p: f"/search?q={p.number}", _url, 0)


def replay_ways(by: str, server: Server, root: str, alone: str) -> Iterator[LookUp]:
    """Yield the look-ups of replay below a root; `alone` is the modifier of a page by itself."""

    def at(modifier: str) -> Callable[[Page], str]:
        return lambda page: f"{root}/{page.date:%Y%m%d%H%M%S}{modifier}/{page.url}"

    yield LookUp("replay, banner", by, server, at(""), _url, 0)
    yield LookUp("replay, page", by, server, at(alone), _title)
    yield LookUp("replay, large page", by, server, at(alone), _title, 1, True)
    yield LookUp("replay, resource", by, server, at("im_"), _body)
    yield LookUp("TimeMap", by, server, lambda p: f"{root}/timemap/link/{p.url}", _url, 0)


def pywb_ways(server: Server, index: str) -> Iterator[LookUp]:
    """Yield the look-ups of pywb's `warcserver` in an index."""
    path, by = f"/{index}/index?url=", f"pywb, {index}"
    yield LookUp("/cdx, exact", by, server, lambda p: path + quote(p.url), _url)
    yield LookUp(
        "/cdx, prefix",
        by,
        server,
        lambda p: f"{path}{quote(p.host)}&matchType=prefix",
        _host,
        _OF_HOST,
    )


def _url(page: Page) -> bytes:
    return page.url.encode()


def _host(page: Page) -> bytes:
    return f"http://{page.host}/".encode()


def _title(page: Page) -> bytes:
    return f"<title>{page.number}</title>".encode()


def _body(page: Page) -> bytes:
    return page.body


def open_pywb(folder: Path, environment: Path, stack: ExitStack) -> Iterator[LookUp]:
    """Run pywb over the indexes, until the stack is closed; yield its look-ups."""
    (folder / "config.yaml").write_text(
        f"enable_auto_colls: false\ncollections:\n  flat:\n    index: {folder}/index.cdxj\n"
        f"    archive_paths: {folder}/warcs/\n"
        f"  zipnum:\n    index:\n      type: zipnum\n      path: {folder}/zipnum/index.idx\n"
        f"    archive_paths: {folder}/warcs/\n"
    )
    servers = []
    for program in ("warcserver", "wayback"):
        port = free_port()
        command = ["-p", str(port), "-b", "127.0.0.1"]
        place = str(environment / "bin" / program)
        process = stack.enter_context(started([place, *command], {}, folder))
        servers.append(Server(f"http://127.0.0.1:{port}/", process.pid))
        servers[-1].wait()
    yield from pywb_ways(servers[0], "flat")
    yield from pywb_ways(servers[0], "zipnum")
    yield LookUp(
        "/content",
        "pywb, flat, id_",
        servers[1],
        lambda p: f"/flat/{p.date:%Y%m%d%H%M%S}id_/{p.url}",
        _body,
    )
    yield from replay_ways("pywb, flat", servers[1], "/flat", "mp_")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=100, help="of each kind in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--pywb", type=Path, default=Path(".venv-pywb"))
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        run((arguments.folder or Path(name) / "lookup").resolve(), arguments, stack)


def run(folder: Path, arguments: argparse.Namespace, stack: ExitStack) -> None:
    """Measure all ways in turn, and print the table."""
    hosts = max(1, arguments.captures // _OF_HOST)
    pages = [Page(number, hosts) for number in range(hosts * _OF_HOST)]
    if not (folder / "baseline.sqlite").exists():
        make(folder, pages)
    ours = stack.enter_context(sheaf(folder / "store", folder, SHEAF_CONTENT_SERVE="true"))
    theirs = stack.enter_context(gunicorn(folder / "baseline.sqlite", "key"))
    record = "/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier="
    ways = [LookUp("GetRecord", "oaipmh", theirs, lambda p: record + p.identifier, _url)]
    if (arguments.pywb / "bin" / "warcserver").exists():
        ways += open_pywb(folder, arguments.pywb.resolve(), stack)
    else:
        print(f"pywb is left out: there is no {arguments.pywb}/bin/warcserver (see --pywb)\n")
    ways += sheaf_ways(ours)
    ways = [way for way in ways if arguments.only in way.name]
    draw, large = random.Random(11), [page for page in pages if page.is_large]
    small = pages[len(large) :]
    parts = (1, arguments.clients)
    chosen = draw.sample(small, min(len(small), len(parts) * arguments.rounds * arguments.requests))
    for way in ways:
        way.ask(pages[:_WARM])
        way.costs, way.times = [], {}
    for number in range(arguments.rounds * len(parts)):
        first = number * arguments.requests
        for way in ways:
            several = chosen[first : first + arguments.requests]
            if way.is_large:
                several = draw.choices(large, k=max(1, arguments.requests // 4))
            way.ask(several, parts[number % len(parts)])
    heads = "".join(f" p50, {n} client{'s'[: n > 1]}, ms | p99 |" for n in parts)
    print(f"| Look-up, {len(pages):,} captures | By | CPU, ms | Ratio |{heads}")
    print(f"|---|---|---|---|{'---|---|' * len(parts)}")
    for name in dict.fromkeys(way.name for way in ways):
        (first_way, *_) = same = [way for way in ways if way.name == name]
        for way in same:
            print(way.show(first_way))
    print(f"\nmemory of sheaf serve: {ours.memory()} MB")


if __name__ == "__main__":
    main()
