"""What a page of templates costs, compared with another checkout of Sheaf in the same run.

    python -m bench.machines.template_pages STORE... [--against FOLDER] [--runs 12]

A store is a folder with published templates, such as those of bench.redif or real ones. One process
for each checkout answers the same requests in turn, without HTTP: the first page of 1,000 records
in each format, and the record that is first on it. The figures are the least and the median
milliseconds of processor time; the rows of the page are kept from its first reading. The ratio is
that of the least ones, which a busy machine disturbs less.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from builder.store.folder import FolderStore
from functions.config import configuration
from functions.http.http_message import Call
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository

_FORMATS = ("oai_dc", "redif", "amf")
_HERE = Path(__file__).parents[2]
_SETTINGS = "[repository]\nnamespace = 'bench.example.org'\n[pages]\nrecords = 1000\n"
_IDENTIFIER = re.compile(rb"<identifier>([^<]+)</identifier>")


def answer(store: Path) -> None:
    """Answer each query of stdin: a line with milliseconds, records and the first identifier."""
    settings = configuration.parse(_SETTINGS, {})
    repository = DuckRepository(FolderStore(store))
    application = Application(repository, settings, lambda: datetime.now(UTC))
    for line in sys.stdin:
        began = time.process_time()
        call = Call("GET", "https://bench.example.org", "/oai", line.strip())
        body = bytes(application.answer(call).body)  # type: ignore[arg-type]
        taken = (time.process_time() - began) * 1000
        named = _IDENTIFIER.search(body)
        print(json.dumps([taken, body.count(b"<record>"), named[1].decode() if named else ""]))
        sys.stdout.flush()


class Checkout:
    """A process that answers from a store with the code of a folder."""

    def __init__(self, code: Path, store: Path) -> None:
        script = f"import sys; sys.path.insert(0, {str(code)!r}); "
        script += f"sys.argv = ['', {str(store)!r}, '--answer']; "
        script += f"__file__ = {str(Path(__file__))!r}; "
        script += "exec(compile(open(__file__).read(), __file__, 'exec'))"
        self._process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=code,
            env={**os.environ, "PYTHONPATH": str(code)},
        )

    def ask(self, query: str) -> tuple[float, int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(query, file=self._process.stdin, flush=True)
        taken, count, name = json.loads(self._process.stdout.readline())
        return taken, count, name

    def close(self) -> None:
        self._process.communicate()


def _queries(first: str) -> Iterator[tuple[str, str]]:
    for prefix in _FORMATS:
        yield f"page in {prefix}", f"verb=ListRecords&metadataPrefix={prefix}"
    for prefix in _FORMATS:
        query = f"verb=GetRecord&metadataPrefix={prefix}&identifier={first}"
        yield f"record in {prefix}", query


def measure(store: Path, against: Path | None, runs: int) -> None:
    """Print the table of a store."""
    checkouts = [Checkout(code, store) for code in (_HERE, against) if code is not None]
    _, count, first = checkouts[0].ask("verb=ListRecords&metadataPrefix=oai_dc")
    print(f"\n{store}: {count} records a page\n")
    print(
        "| | least | median | least, before | median, before | ratio |\n|---|---|---|---|---|---|"
    )
    for name, query in _queries(first):
        times: list[list[float]] = [[] for _ in checkouts]
        for run in range(runs + 2):
            for number, checkout in enumerate(checkouts):
                taken = checkout.ask(query)[0]
                if run > 1:  # the first ones warm up
                    times[number].append(taken)
        cells = [f"{min(t):.1f} | {statistics.median(t):.1f}" for t in times]
        ratio = f"{min(times[0]) / min(times[1]):.2f}" if against else ""
        print(f"| {name} | {' | '.join(cells)} | {ratio} |", flush=True)
    for checkout in checkouts:
        checkout.close()


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("stores", nargs="+", type=Path)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        answer(arguments.stores[0])
        return
    for store in arguments.stores:
        measure(store.resolve(), arguments.against, arguments.runs)


if __name__ == "__main__":
    main()
