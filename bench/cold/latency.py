"""A bucket of S3 with S3's latency, made of a folder: what the benchmarks of the function read.

    python -m bench.cold.latency FOLDER [--wait 0.02] [--rate 75]

An answer's first byte comes after `--wait` seconds, the rest at `--rate` megabytes a second for
each connection. It answers GET, whole or by range, and counts exactly. It looks at no signature:
that readers sign as they must is for the tests over SeaweedFS to show.
"""

import argparse
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

BUCKET = "bench"
COUNTS = "/-/counts"
"""Where it tells, as JSON, the requests since it was last asked, and the bytes of their answers."""

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_CHUNK = 1 << 16


@dataclass
class Counts:
    """Requests and the bytes of bodies, since the last look."""

    requests: int = 0
    bytes: int = 0
    keys: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, key: str, size: int) -> None:
        with self.lock:
            self.requests += 1
            self.bytes += size
            self.keys.append(key)

    def taken(self) -> dict[str, Any]:
        with self.lock:
            found = {"requests": self.requests, "bytes": self.bytes, "keys": self.keys}
            self.requests, self.bytes, self.keys = 0, 0, []
        return found


@contextmanager
def served(folder: Path, wait: float, rate: float) -> Iterator[tuple[str, Counts]]:
    """Serve the folder as a bucket; give the endpoint, and what is counted."""
    counts = Counts()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(folder, counts, wait, rate))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", counts
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(
    folder: Path, counts: Counts, wait: float, rate: float
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if path == COUNTS:
                self._send(200, json.dumps(counts.taken()).encode(), {})
                return
            time.sleep(wait)
            key = path.removeprefix(f"/{BUCKET}/")
            try:
                source = (folder / key).open("rb")
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                counts.add(key, 0)
                self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", {})
                return
            with source:
                size = source.seek(0, 2)
                start, end, status = 0, size, 200
                match = _RANGE.fullmatch(self.headers.get("Range", ""))
                if match is not None:
                    first, last = match.groups()
                    start = int(first) if first else max(0, size - int(last))
                    end, status = min(size, int(last) + 1) if first and last else size, 206
                if start > 0 and start >= size:
                    counts.add(key, 0)
                    self._send(416, b"<Error><Code>InvalidRange</Code></Error>", {})
                    return
                source.seek(start)
                data = source.read(end - start)
            tag = hashlib.md5(f"{key} {size}".encode()).hexdigest()
            headers = {"ETag": f'"{tag}"', "Last-Modified": formatdate(0, usegmt=True)}
            if status == 206:
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
            counts.add(key, 0 if self.command == "HEAD" else len(data))
            self._send(status, data, headers)

        def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "HEAD":
                return
            begun = time.perf_counter()
            for start in range(0, len(data), _CHUNK):
                self.wfile.write(data[start : start + _CHUNK])
                due = begun + min(start + _CHUNK, len(data)) / (rate * 1e6)
                time.sleep(max(0.0, due - time.perf_counter()))

        def log_message(self, *arguments: Any) -> None:
            pass

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wait", type=float, default=0.02, help="seconds before the first byte")
    parser.add_argument("--rate", type=float, default=75, help="megabytes a second")
    arguments = parser.parse_args()
    with served(arguments.folder, arguments.wait, arguments.rate) as (endpoint, _):
        print(endpoint, flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
