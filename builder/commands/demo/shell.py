"""Runs commands of `sheaf` for the demo, in this process or as a server in another.

Its `sheaf.toml` has only the values that are not defaults.
"""

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.errors import UsageError
from builder.store.context import Context
from functions.config import configuration

CarryOut = Callable[[Sequence[str], Callable[[Any], Context]], int]
"""Runs a command line in the given context, and returns its exit status."""
_PATIENCE = 10.0
"""Seconds for a server to finish its work after it was asked to stop."""
NAMESPACE = "demo.example.org"
_SETTINGS = {
    "repository.name": "Sheaf's demonstration",
    "repository.admin_emails": ["demo@example.org"],
    "repository.namespace": NAMESPACE,
    "pages.records": 20,
    "publish.lead": 1,
    "serve.clock_allowance": 1,  # one machine has one clock
    "fileset.strategy": "s3",  # files of datasets as objects of the store, not within a WARC
    "http.host_seconds": 0,  # the host is this machine
    "content.serve": True,
    "sets.names": {"collection:demo": "Collection of the demonstration"},
}
_LOOPBACK = {"http.allow_networks": ["127.0.0.0/8"]}


@dataclass(frozen=True, slots=True)
class CommandReply:
    """Result of a command: exit status, JSON documents in the order printed, its messages."""

    code: int
    documents: list[Any]
    remarks: list[str]


@dataclass(frozen=True)
class _Quiet(Context):
    """The context of a command that keeps its messages instead of printing them."""

    remarks: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.remarks.append(text)


class Shell:
    """Runs commands with one configuration.

    Environment variables do not change that configuration.
    """

    def __init__(self, context: Context, config: Path) -> None:
        self._context = context
        self._options = ["--config", str(config), "--json"]
        self._log = config.parent / "serve.log"

    def run(self, line: Sequence[str]) -> CommandReply:
        """Run a command in this process. Raises SheafError as the command does."""
        carry_out: CarryOut = self._context.arguments.carry_out
        remarks: list[str] = []
        output = io.StringIO()
        outer = self._context
        with redirect_stdout(output):
            code = carry_out(
                [*self._options, *line],
                lambda arguments: _Quiet(
                    arguments, {}, outer.now, outer.sleep, outer.identity, remarks
                ),
            )
        return CommandReply(code, _documents(output.getvalue()), remarks)

    @contextmanager
    def serve(self, line: Sequence[str]) -> Iterator[tuple[Any, "subprocess.Popen[str]"]]:
        """Run a server while the block runs; give the document that it prints, and its process.

        Raises UsageError with the server's message if it does not start.
        """
        command = [sys.executable, "-P", "-m", "sheaf_archive", *self._options, *line]
        runtime = {
            name: value
            for name, value in self._context.environment.items()
            if not name.startswith("SHEAF_")
        }
        with (
            self._log.open("w", encoding="utf-8") as log,
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, env=runtime, encoding="utf-8"
            ) as process,
        ):
            try:
                yield self._announcement(process), process
            finally:
                process.terminate()
                try:
                    process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _announcement(self, process: "subprocess.Popen[str]") -> Any:
        """Return the document that a server prints once it listens."""
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            text += line
            if line.rstrip() == "}":
                return json.loads(text)
        *_, message = ["no server", *self._log.read_text("utf-8").splitlines()]
        raise UsageError(message.removeprefix("sheaf: "))


def _documents(text: str) -> list[Any]:
    """Return the consecutive JSON documents of a text."""
    decoder = json.JSONDecoder()
    documents, place = [], 0
    while place < len(text):
        document, place = decoder.raw_decode(text, place)
        documents.append(document)
        while text[place : place + 1].isspace():
            place += 1
    return documents


def write_settings(path: Path, archives: Sequence[str], port: int | None = None) -> None:
    """Write the configuration for archive files in the folders `archives`.

    With `port`, files may be fetched from this port of this machine.
    """
    settings: dict[str, Any] = {**_SETTINGS, "content.archives": list(archives)}
    if port is not None:
        settings |= {**_LOOPBACK, "http.ports": [port]}
    path.write_text(configuration.template(settings), "utf-8")
