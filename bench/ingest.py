"""How fast archive files are read, beside what inflating them takes and beside other builds.

    python -m bench.ingest [FILE...] [--mb 150] [--rounds 5]

Without files a crawl is made: 14 KB of gzip a capture; pages with titles, images, style sheets, and
a request record for each. Every figure is of a process of its own, and of its CPU time, but what it
takes to load the public suffix list, a tenth of a second. The share is that of the speed of zlib on
the same bytes. The baselines: warcio with the HTTP heads and a SHA-1 of each payload, which makes
an index; and the same with each page parsed by lxml and each URL brought into its sorted form, as a
first build of an ingest has it.
"""

import argparse
import gzip
import hashlib
import io
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from base64 import b32encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isal import isal_zlib
from lxml import html
from warcio.archiveiterator import ArchiveIterator

from builder.intake.captures import Capture, Fault
from builder.intake.rows import IntakeWriter
from builder.sources.webarchives.rules import DocumentRules
from builder.sources.webarchives.webarchive import ArchiveReader
from builder.store.suffix_list import split_suffix

_WORDS = [
    f"{a}{b}{c}"
    for a in ("za", "po", "ne", "vy", "ro", "kni", "ško", "mě", "Pra", "tis")
    for b in ("", "hra", "sta", "vo", "lo", "mno", "ka")
    for c in ("", "ní", "ha", "ti", "dlo", "vna", "sto", "m")
]
_PIECE = 1 << 16


def crawl(path: Path, size: int) -> None:
    """Write a crawl of `size` bytes of gzip, the same each time."""
    draw = random.Random(1)
    with path.open("wb") as file:
        number = 0
        while file.tell() < size:
            for record in _exchange(draw, number):
                file.write(gzip.compress(record, 6, mtime=0))
            number += 1


def _exchange(draw: random.Random, number: int) -> Iterator[bytes]:
    host = f"www.host{number // 40}.example.org"
    url = f"http://{host}/{draw.choice(_WORDS[8:])}/{number}?a={number % 9}"
    kind = draw.choices(("text/html; charset=utf-8", "image/jpeg", "text/css"), (60, 30, 10))[0]
    if kind == "image/jpeg":
        body = b"\xff\xd8\xff" + draw.randbytes(int(min(draw.lognormvariate(9, 1.2), 4e6)))
    else:
        words = " ".join(draw.choices(_WORDS, k=int(min(draw.lognormvariate(8.1, 1), 1e5))))
        text = words if kind == "text/css" else _page(draw, words, number)
        body = text.encode()
    digest = b32encode(hashlib.sha1(body).digest())
    head = f"HTTP/1.1 200 OK\r\nServer: Apache\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    asked = f"GET {url[7 + len(host) :]} HTTP/1.0\r\nUser-Agent: crawler\r\n\r\n".encode()
    message = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
    date = f"2008-04-30T20:{number // 600 % 60:02}:{number // 10 % 60:02}Z".encode()
    yield _record(b"response", url, date, message, number, b"WARC-Payload-Digest: sha1:" + digest)
    yield _record(b"request", url, date, asked, number, b"WARC-Concurrent-To: <urn:uuid:0>")


def _page(draw: random.Random, words: str, number: int) -> str:
    dash = "&ndash;" if number % 8 else "&#8211;"
    links = "".join(f'<link rel="stylesheet" href="/style{n}.css">\n' for n in range(3))
    text = "".join(
        f'<p class="c{draw.randrange(9)}"><a href="/{n}">{words[n : n + 300]}</a></p>\n'
        for n in range(0, len(words), 300)
    )
    return (
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1">\n'
        f'<html lang="cs">\n<head>\n<meta charset="utf-8">\n{links}'
        f"<title>{words[:40]} {dash} {number}</title>\n</head>\n<body>\n{text}</body>\n</html>\n"
    )


def _record(kind: bytes, url: str, date: bytes, block: bytes, number: int, more: bytes) -> bytes:
    lines = (
        b"WARC/1.0",
        b"WARC-Type: " + kind,
        b"WARC-Target-URI: " + url.encode(),
        b"WARC-Date: " + date,
        more,
        b"WARC-IP-Address: 192.0.2.1",
        b"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012d>" % number,
        b"Content-Type: application/http; msgtype=" + kind,
        b"Content-Length: %d" % len(block),
    )
    return b"\r\n".join((*lines, b"", block)) + b"\r\n\r\n"


def _inflate(path: Path, codec: Any, take: Callable[[bytes], object] = len) -> int:
    with path.open("rb") as file:
        inflater = codec.decompressobj(31)
        data = file.read(_PIECE)
        while data:
            take(inflater.decompress(data))
            data = inflater.unused_data if inflater.eof else b""
            if inflater.eof:
                inflater = codec.decompressobj(31)
            data = data or file.read(_PIECE)
    return 0


def _hashed(path: Path) -> int:
    return _inflate(path, zlib, hashlib.sha1(usedforsecurity=False).update)


def _read(path: Path, titles: bool) -> int:
    rules = DocumentRules(redirects=True, errors=True, titles=titles)
    with path.open("rb") as file:
        return sum(isinstance(event, Capture) for event in ArchiveReader(file, path.name, rules))


def _ingest(path: Path) -> int:
    found = 0
    with tempfile.TemporaryDirectory() as folder, path.open("rb") as file:
        part = IntakeWriter(Path(folder), "000000")
        for event in ArchiveReader(file, path.name, DocumentRules(redirects=True, errors=True)):
            if isinstance(event, Capture):
                part.capture(event, event.sets)
                found += 1
            elif isinstance(event, Fault):
                part.fault(event)
        part.close()
        file.seek(0)
        hashlib.file_digest(file, "sha256")
    return found


def _warcio(path: Path, parsed: bool) -> int:
    found = 0
    rows = []
    with path.open("rb") as file:
        records = ArchiveIterator(file, arc2warc=True)
        for record in records:
            if record.rec_type not in ("response", "resource", "revisit"):
                continue
            found += 1
            try:
                payload = (record.content_stream() if parsed else record.raw_stream).read()
            except (AttributeError, zlib.error):  # of brotli, and of payloads that are cut off
                payload = b""
            url = record.rec_headers.get_header("WARC-Target-URI") or ""
            row = [url, hashlib.sha1(payload).hexdigest(), records.get_record_offset()]
            if parsed:
                row += [_sorted_form(url), _title(payload) if b"<html" in payload[:2000] else None]
            rows.append(row)
    return found


def _title(page: bytes) -> str | None:
    try:
        title: str | None = html.parse(io.BytesIO(page)).findtext(".//title")
        return title
    except (ValueError, AssertionError, OSError):
        return None


def _sorted_form(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = ",".join(reversed((parts.hostname or "").split(".")))
    except ValueError:
        return url
    query = "&".join(sorted(parts.query.split("&")))
    return f"{host}){parts.path.lower()}?{query}"


ROWS: dict[str, Callable[[Path], int]] = {
    "zlib alone": lambda path: _inflate(path, zlib),
    "ISA-L alone": lambda path: _inflate(path, isal_zlib),
    "zlib and a SHA-1 of all": _hashed,
    "indexing, without titles": lambda path: _read(path, False),
    "reading, with titles": lambda path: _read(path, True),
    "ingest, with Parquet": _ingest,
    "warcio, HTTP, SHA-1": lambda path: _warcio(path, False),
    "warcio, lxml, sorted URLs": lambda path: _warcio(path, True),
}


def _measured(row: str, path: Path) -> dict[str, float]:
    split_suffix("example.org")
    wall, cpu = time.perf_counter(), time.process_time()
    found = ROWS[row](path)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {"captures": found, "cpu": cpu, "wall": wall, "rss": used}


def _started(row: str, path: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "bench.ingest", str(path), "--row", row]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _finished(process: "subprocess.Popen[str]") -> dict[str, float]:
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(process.returncode)
    found: dict[str, float] = json.loads(output)
    return found


def _median(of: list[dict[str, float]], key: str) -> float:
    return statistics.median(one[key] for one in of)


def run(path: Path, rounds: int) -> None:
    """Measure every row `rounds` times, one after the other in each round, and print the table."""
    size = path.stat().st_size / 1e6
    results: dict[str, list[dict[str, float]]] = {row: [] for row in ROWS}
    pairs = []
    for _ in range(rounds):
        for row, found in results.items():
            found.append(_finished(_started(row, path)))
        two = [_started("ingest, with Parquet", path) for _ in range(2)]
        pairs.append(max(_finished(process)["wall"] for process in two))
    inflate = _median(results["zlib alone"], "cpu")
    print(f"\n{path.name}: {size:.0f} MB of gzip, medians of {rounds}\n")
    print("| what | CPU s | MB/s of gzip | of zlib's speed | captures/s | peak MB |")
    print("|---|---|---|---|---|---|")
    for row, found in results.items():
        cpu, captures = _median(found, "cpu"), _median(found, "captures")
        rate = f"{captures / cpu:,.0f}" if captures else ""
        print(
            f"| {row} | {cpu:.2f} | {size / cpu:.0f} | {inflate / cpu:.0%} | {rate} "
            f"| {_median(found, 'rss'):.0f} |"
        )
    one = _median(results["ingest, with Parquet"], "wall")
    both = statistics.median(pairs)
    print(f"\nTwo ingests at once: {2 * one / both:.2f} times the speed of one, by wall time.")


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--mb", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(_measured(arguments.row, arguments.files[0])))
        return
    with tempfile.TemporaryDirectory() as folder:
        if not arguments.files:
            made = Path(folder) / "generated.warc.gz"
            crawl(made, arguments.mb * 1_000_000)
            arguments.files.append(made)
        for path in arguments.files:
            run(path, arguments.rounds)


if __name__ == "__main__":
    main()
