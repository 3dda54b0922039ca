"""`sheaf demo`."""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from builder.arguments import declare
from builder.commands.demo import samples
from builder.commands.demo.scenario import HOST, DemoReport, Scenario, ScenarioError
from builder.errors import UsageError, explaining
from builder.intake.paths import list_files
from builder.serve.server import Listeners
from builder.store.context import Context

_MARK = ".sheaf-demo"


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "sources [SOURCE]...": "archive files of your own",
            "--folder FOLDER": "folder of the demo; it is replaced",
            "--port PORT": "port to serve at; 0 for any",
            "--once": "end after the report",
        },
        folder={"default": "demo-store"},
        port={"default": 8080},
    )


def run(context: Context) -> int:
    """Demonstrate each step on this machine: ingest, publish, serve, harvest, restore.

    Without your own files, the demo also publishes and changes a small RePEc archive, and restores
    a site from the archive.
    """
    arguments = context.arguments
    paths = list_files(arguments.sources)  # errors of the arguments are reported before any work
    for listener in Listeners("127.0.0.1", arguments.port).sockets:  # and so is a port in use
        listener.close()
    places = list(dict.fromkeys(str(path.resolve().parent) for path in paths))
    folder = _clear(Path(arguments.folder))
    with ExitStack() as stack:
        scenario = Scenario(context, folder, stack)
        try:
            server = scenario.play(arguments.sources, places, arguments.port)
        except ScenarioError as error:
            _print(context, scenario.report, [])
            context.say(f"sheaf: {error}")
            return 1
        try:  # an interrupt may come as soon as the report is read
            _print(context, scenario.report, _hints(context, scenario.report.document, folder))
            if arguments.once:
                return 0
            while True:
                # An interrupt just before a wait without a time limit would be noticed after it.
                with suppress(subprocess.TimeoutExpired):
                    return 1 if server.wait(1.0) else 0
        except KeyboardInterrupt:
            context.say("stopped")
    return 0


def _clear(folder: Path) -> Path:
    """Return the demo's folder, emptied. Raises UsageError for a folder that no demo created."""
    if folder.exists():
        if not (folder / _MARK).exists():
            raise UsageError(f"{folder} is not a folder of a demo: choose another with --folder")
        shutil.rmtree(folder)
    with explaining(folder, "created"):
        folder.mkdir(parents=True)
        (folder / _MARK).touch()
    return folder


def _print(context: Context, report: DemoReport, hints: Sequence[str]) -> None:
    context.result("\n".join(["", *report.lines, "", *hints]), report.document)


def _hints(context: Context, document: Mapping[str, Any], folder: Path) -> list[str]:
    """Return suggestions for what to do next."""
    sheaf = "sheaf" if shutil.which("sheaf") == sys.argv[0] else sys.argv[0]
    oai = document["oai"]
    store = f"--store {folder}/store"
    asks = [f'  ask         {sheaf} query {store} "SELECT url, title FROM captures"']
    if "repec" in document:
        asks.append(f"  look back   {sheaf} obi {store} {samples.CHANGED_PAPER}")
    if "restored" in document:
        page = folder / "site" / HOST / "index.html"
        asks.append(f"  look at     {page.resolve().as_uri()}")
    if context.arguments.once:
        return [f"  serve       {sheaf} serve --config {folder}/sheaf.toml", *asks]
    return [
        f"  open        {oai.removesuffix('oai')}",
        f"  harvest     {oai}?verb=ListRecords&metadataPrefix=oai_dc",
        *asks,
        "",
        "  Ctrl-C ends it.",
    ]
