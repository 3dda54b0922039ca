"""Cost of a harvest by `sheaf harvest`, sickle and oaipmh-scythe from one endpoint.

    python -m bench.harvester [--captures 100000] [--runs 3] [--store FOLDER]

Generated captures are published and served by `sheaf serve`. Its pages are recorded once, and then
a process answers with them from memory, with gzip on request. So the figures are those of the
harvester, not of the server. Each harvester is a process of its own and starts with an empty
folder. Sheaf writes each record raw and parsed, checks and indexes it. sickle and oaipmh-scythe are
used as in their manuals: each record's header and Dublin Core are written as a JSON line. The floor
is a client that only counts. All take turns; medians are shown. CPU is of the harvester.
"""

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from bench.client import _token
from bench.harvest import published
from bench.server import FIRST, sheaf

_VERBS = ("Identify", "ListMetadataFormats", "ListSets")
Pages = dict[str, tuple[bytes, bytes]]


def canonical(query: str) -> str:
    """Return a query in one form: harvesters name arguments in orders of their own."""
    return urlencode(sorted(parse_qsl(query)))


def taken(url: str) -> Pages:
    """Return by query what an endpoint answers, plain and in gzip."""
    parts, found = urlsplit(url), Pages()
    connection = HTTPConnection(parts.hostname or "", parts.port)
    queries = [FIRST, *(f"verb={verb}" for verb in _VERBS)]
    while queries:
        query = queries.pop()
        connection.request("GET", f"{parts.path}?{query}")
        body = connection.getresponse().read()
        found[canonical(query)] = (body, gzip.compress(body, 4))
        if token := _token(body):
            verb = dict(parse_qsl(query))["verb"]
            queries.append(urlencode({"verb": verb, "resumptionToken": token}))
    connection.close()
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    pages: Pages

    def do_GET(self) -> None:
        plain, packed = self.pages[canonical(self.path.partition("?")[2])]
        accepts = "gzip" in self.headers.get("Accept-Encoding", "")
        body = packed if accepts else plain
        more = b"Content-Encoding: gzip\r\n" if accepts else b""
        self.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/xml; charset=utf-8\r\n%b"
            b"Content-Length: %d\r\n\r\n%b" % (more, len(body), body)
        )

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def replayed(pages: Pages) -> Iterator[str]:
    """Answer the pages in a process of its own; give the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    _Handler.pages = pages
    process = os.fork()
    if process == 0:
        server.serve_forever()
    server.socket.close()
    try:
        yield f"http://127.0.0.1:{server.server_port}/oai"
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)


def by_sickle(url: str, target: str) -> int:
    from sickle import Sickle

    count = 0
    with Path(target).open("w") as file:
        for record in Sickle(url).ListRecords(metadataPrefix="oai_dc"):
            count += 1
            head = record.header
            told = [head.identifier, head.datestamp, head.deleted, head.setSpecs]
            file.write(json.dumps([*told, {} if head.deleted else record.metadata]) + "\n")
    return count


def by_scythe(url: str, target: str) -> int:
    from oaipmh_scythe import Scythe
    from oaipmh_scythe.models import Record

    count = 0
    with Path(target).open("w") as file, Scythe(url) as scythe:
        for record in scythe.list_records(metadata_prefix="oai_dc"):
            assert isinstance(record, Record)
            count += 1
            head = record.header
            told = [head.identifier, head.datestamp, head.deleted, head.setSpecs]
            file.write(json.dumps([*told, {} if head.deleted else record.metadata]) + "\n")
    return count


_OWN = {"sickle": by_sickle, "oaipmh-scythe": by_scythe}


@dataclass(frozen=True)
class Measured:
    """One harvest: records, seconds of the clock and of CPU, and the most memory in MB."""

    records: int
    seconds: float
    cpu: float
    peak: int


def harvesters(forms: Sequence[str]) -> dict[str, list[str]]:
    """Return the command of each harvester by its name, with {url} and {folder} to be filled."""
    python = sys.executable
    found = {
        f"sheaf harvest --format {form}": [
            python,
            "-m",
            "builder",
            "harvest",
            "{url}",
            "{folder}/h",
            "--format",
            form,
            "--json",
        ]
        for form in forms
    }
    for name in _OWN:
        found[name] = [python, "-m", "bench.harvester", "--by", name, "{url}", "{folder}/out"]
    found["counting only"] = [python, "-m", "bench.client", "{url}", FIRST, "--gzip"]
    return found


# A process begins with its parent's memory, so each is begun by one that has little.
_MEASURE = """
import json, os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
out = process.stdout.read()
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - began
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps([status, seconds, cpu, usage.ru_maxrss // 1024, out.decode()]))
"""


def measured(command: Sequence[str], url: str) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        given = [part.format(url=url, folder=folder) for part in command]
        told = subprocess.run(
            [sys.executable, "-c", _MEASURE, *given], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    status, seconds, cpu, peak, out = json.loads(told)
    assert status == 0, given
    found = json.loads(out)
    if isinstance(found, list):
        (found,) = found
    return Measured(found["records"], seconds, cpu, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captures", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--by", choices=_OWN)
    parser.add_argument("rest", nargs="*")
    arguments = parser.parse_args()
    if arguments.by:
        print(json.dumps({"records": _OWN[arguments.by](*arguments.rest)}))
        return
    with tempfile.TemporaryDirectory() as folder:
        store = arguments.store or published(Path(folder), arguments.captures)
        with sheaf(store, Path(folder)) as server:
            pages = taken(server.url)
    size = sum(len(plain) for plain, _ in pages.values())
    print(f"{len(pages):,} answers, {size / 1e6:,.0f} MB\n")
    found: dict[str, list[Measured]] = {}
    with replayed(pages) as url:
        for _ in range(arguments.runs):
            for name, command in harvesters(("parquet", "jsonl", "xml")).items():
                found.setdefault(name, []).append(measured(command, url))
    base = statistics.median(m.records / m.seconds for m in found["sickle"])
    print("| harvester | records/s | to sickle | CPU s per 100,000 | peak MB |")
    print("|---|---|---|---|---|")
    for name, some in found.items():
        rate = statistics.median(m.records / m.seconds for m in some)
        cpu = statistics.median(m.cpu / m.records for m in some) * 100_000
        peak = max(m.peak for m in some)
        print(f"| {name} | {rate:,.0f} | {rate / base:.2f} | {cpu:.1f} | {peak} |")


if __name__ == "__main__":
    main()
