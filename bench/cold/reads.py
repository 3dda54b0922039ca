"""The reads of a publish of 11 captures from a bucket, by the number of published captures.

    python -m bench.cold.reads [--captures 250000 1000000] [--wait 0.02] [--detail]

A tenth of the captures there are revisits. Of the 11 new ones, none or three are revisits of
captures that lie far apart. The bucket is moto's; each of its answers takes `--wait` seconds more.
The baseline fetches each of these data files whole.
"""

import argparse
import logging
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

from bench.generate import captures, fill
from builder.intake import intake
from builder.intake.captures import Capture
from builder.intake.rows import IntakeWriter
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.snapshot import layout
from functions.snapshot.store import Writer
from tests.bucket import Bucket, OneByOne, fresh


class CountedBucket:
    """moto's S3 that counts the answers to GET by key, after a wait."""

    def __init__(self) -> None:
        self._bucket = OneByOne()
        self._wait = 0.0
        self._lock = threading.Lock()
        self._gets: list[tuple[str, int]] = []
        self._others = 0

    def start(self, wait: float) -> tuple[list[tuple[str, int]], int]:
        """Begin to count anew; return the keys and bytes of GETs so far, and other requests."""
        with self._lock:
            found = self._gets, self._others
            self._gets, self._others, self._wait = [], 0, wait
        return found

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """Answer a request."""
        time.sleep(self._wait)
        answer = self._bucket(environ, start_response)
        with self._lock:
            if environ["REQUEST_METHOD"] == "GET" and "list-type" not in environ["QUERY_STRING"]:
                _, _, _, key = environ["PATH_INFO"].split("/", 3)
                self._gets.append((key, sum(map(len, answer))))
            else:
                self._others += 1
        return answer


@contextmanager
def served(bucket: CountedBucket) -> Iterator[str]:
    """Context of the bucket's endpoint."""
    server = make_server("127.0.0.1", 0, bucket, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def eleven(count: int, revisits: int, seed: int) -> Iterator[Capture]:
    """Yield 11 captures; `revisits` of them are of some of the `count` that were published."""
    for number, capture in enumerate(captures(11 - revisits, seed=seed)):
        name = f"new{seed}{number}"
        digest = name.upper().ljust(32, "A")
        yield replace(capture, identity=name.ljust(32, "a"), content_digest=digest)
    step = count // (revisits + 1) // 10 * 10
    wanted = {step * (number + 1) for number in range(revisits)}
    for number, capture in enumerate(captures(max(wanted, default=-1) + 1)):
        if number in wanted:
            yield replace(
                capture,
                identity=f"revisit{seed}{number}".ljust(32, "a"),
                warc_record_type="revisit",
                refers_to_url=capture.url,
                refers_to_date=capture.fetch_date,
                fetch_date="2020-01-01T00:00:00Z",
                fetch_time=datetime(2020, 1, 1, tzinfo=UTC),
                warc_filename="new.warc.gz",
            )


def ingest(store: Writer, name: str, some: Iterator[Capture]) -> None:
    """Put captures into the intake as one run."""
    with tempfile.TemporaryDirectory() as scratch:
        part = IntakeWriter(Path(scratch), "000000")
        for capture in some:
            part.capture(capture, capture.sets)
        part.close()
        source = intake.IntakeSource(name, name, "", "warc.gz", 0, 11, 0, 0, {}, {})
        intake.commit(store, intake.IntakeRun(name, (source,)), Path(scratch))


def run(count: int, wait: float, *, detailed: bool) -> None:
    """Publish `count` captures into a folder, copy it to a bucket, publish there; print rows."""
    settings = configuration.parse('[repository]\nnamespace = "bench.example.org"\n', {})
    runtime = Runtime(lambda: datetime.now(UTC), time.sleep, lambda text: None, {})
    bucket = CountedBucket()
    with tempfile.TemporaryDirectory() as scratch, served(bucket) as endpoint:
        folder = FolderStore(Path(scratch) / "store")
        (Path(scratch) / "rows").mkdir()
        fill(folder, count, Path(scratch) / "rows", revisits=10)
        publish(folder, settings, runtime)
        store = fresh(endpoint)
        for key in folder.keys(""):
            if not key.startswith(layout.INTAKE):
                with folder.open(key) as source:
                    store.put(key, source)
        for seed, revisits in ((7, 0), (8, 3)):
            ingest(store, f"new-{seed}", eleven(count, revisits, seed))
            cold = Bucket(endpoint, store.bucket)
            bucket.start(wait)
            began = time.perf_counter()
            built = publish(cold, settings, runtime)
            seconds = time.perf_counter() - began
            gets, others = bucket.start(0)
            assert built.new == 11, f"{built.new} new, {built.changed} changed"
            sizes = {entry.key: entry.bytes for entry in store.entries(layout.RECORDS)}
            whole = sum(sizes.get(key, 0) for key in {key for key, _ in gets})
            rest = sum(size for key, size in gets if key not in sizes)
            print(
                f"| {count:,} | {revisits} | {len(gets)} | {sum(s for _, s in gets) / 1e6:.2f} "
                f"| {(whole + rest) / 1e6:.2f} | {others} | {seconds:.2f} |",
                flush=True,
            )
            if detailed:
                _detail(gets)


def _detail(gets: list[tuple[str, int]]) -> None:
    by_folder: dict[str, list[int]] = {}
    for key, size in gets:
        by_folder.setdefault(key.rpartition("/")[0] or key, []).append(size)
    for name, found in sorted(by_folder.items()):
        print(f"    {name}: {len(found)} GETs, {sum(found):,} bytes", flush=True)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--captures", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--wait", type=float, default=0.02, help="seconds")
    parser.add_argument("--detail", action="store_true", help="show GETs and bytes by folder")
    arguments = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    print("| captures there | revisits | GETs | MB | MB of whole files | other requests | s |")
    print("|---|---|---|---|---|---|---|")
    for count in arguments.captures:
        run(count, arguments.wait, detailed=arguments.detail)


if __name__ == "__main__":
    main()
