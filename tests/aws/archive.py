"""A published archive, and `sheaf` as a process of its own over it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.conftest import warc

SETTINGS = {
    "SHEAF_REPOSITORY_NAME": "Archiv <webu> & \u201espol.\u201c",
    "SHEAF_REPOSITORY_NAMESPACE": "archive.example.org",
    "SHEAF_REPOSITORY_ADMIN_EMAILS": '["keeper@archive.example.org"]',
    "SHEAF_PAGES_RECORDS": "40",
    "SHEAF_PAGES_IDENTIFIERS": "60",
    "SHEAF_PAGES_SETS": "5",
    "SHEAF_RIGHTS_STATEMENT": "Ask <us> first.",
    "SHEAF_PROVENANCE_ORIGIN": "https://archive.example.org/warcs",
}
"""What the function and the server have in common."""


@dataclass(frozen=True)
class Archive:
    """A store, and the variables by which a process reaches it."""

    store: str
    environment: Mapping[str, str]
    folder: Path

    def line(self, *arguments: object) -> list[str]:
        """Return the command."""
        return [sys.executable, "-m", "builder", *map(str, arguments), "--store", self.store]

    def sheaf(self, *arguments: object) -> str:
        """Carry out a command; return its output."""
        done = subprocess.run(
            self.line(*arguments), env=self.all, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def all(self) -> dict[str, str]:
        """The whole environment of a command."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SHEAF_"))}
        return {**kept, "PYTHONPATH": str(Path(__file__).parents[2]), **self.environment}

    def ingest(self, name: str, pages: Mapping[str, bytes], *options: str) -> None:
        """Put pages into the intake."""
        self.sheaf("ingest", warc(self.folder / f"{name}.warc.gz", dict(pages)), *options)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Ask the snapshot."""
        return [json.loads(line) for line in self.sheaf("query", "--json", sql).splitlines()]

    @contextmanager
    def served(self, **settings: str) -> Iterator[str]:
        """Run `sheaf serve`; give its URL."""
        with (self.folder / "serve.log").open("ab") as log:
            process = subprocess.Popen(
                self.line("serve", "--port", "0", "--json"),
                env={**self.all, **settings},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdout is not None
        try:
            text = ""
            while not text.endswith("}\n"):
                line = process.stdout.readline()
                assert line, (self.folder / "serve.log").read_text()
                text += line
            yield json.loads(text)["url"]
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def pages(start: int, end: int, word: str = "Page") -> dict[str, bytes]:
    """Return pages of many hosts, whose titles have what XML and JSON find hard."""
    found = {}
    for number in range(start, end):
        title = f"{word} {number} \u010desky &amp; <b>\u2603\U0001f40c \u0007 \"q\" 'a'"
        body = f"<meta charset=utf-8><title>{title}</title><html lang=cs>".encode()
        found[f"http://www.h{number % 13}.example.cz/%C4%8D?a={number}&b=<{number}>"] = body
    return found


def publish(archive: Archive) -> None:
    """Make three snapshots: with collections, changes, and tombstones."""
    archive.ingest("one", pages(0, 240), "--collection", "serials:harvest_november07")
    archive.sheaf("publish")
    archive.ingest("two", pages(200, 300, "Changed"), "--collection", "topics:water")
    archive.sheaf("publish")
    archive.sheaf("withdraw", "--url-prefix", "http://www.h3.example.cz/", "--reason", "asked for")
