"""`sheaf demo`."""

import argparse
import shutil
import sys
import threading
from collections import Counter
from pathlib import Path

from builder import ingest, intake, stretch, work
from builder.context import Context
from builder.demo import record
from builder.demo.harvester import HarvestSummary, harvest
from builder.errors import UsageError
from builder.progress import Progress
from builder.publish import publish
from builder.revision import Built
from builder.server import LocalServer
from builder.sources import domain
from builder.sources.event import Rules
from builder.store import FolderStore
from builder.stretch import File
from builder.surroundings import Surroundings
from builder.tally import tally
from functions.oai import trial
from functions.oai.duck import DuckRepository
from functions.oai.handler import Application
from functions.snapshot import configuration, layout

_MARK = ".sheaf-demo"
_SETTINGS = {
    "repository.name": "Sheaf's demonstration",
    "repository.admin_emails": ["demo@example.org"],
    "repository.namespace": "demo.example.org",
    "pages.records": 20,
    "sets.names": {"collection:demo": "Collection of the demonstration"},
}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="archive files of your own")
    parser.add_argument("--folder", default="demo-store", help="where it all goes; made anew")
    parser.add_argument("--port", type=int, default=8080, help="port to serve at; 0 for any")
    parser.add_argument("--once", action="store_true", help="end after the account")


def run(context: Context) -> int:
    """Show the whole way: a crawl (or your own files), ingest, publish, serve, harvest."""
    arguments = context.arguments
    sources = list(arguments.sources)
    paths = stretch.find(sources)  # a fault of the user is told before anything is made
    folder = _folder(Path(arguments.folder))
    (folder / "sheaf.toml").write_text(configuration.template(_SETTINGS), "utf-8")
    settings = configuration.parse((folder / "sheaf.toml").read_text("utf-8"), {})
    store = FolderStore((folder / "store").resolve())
    if not sources:
        context.say("recording a small site over HTTP, twice ...")
        recording = record(folder / "crawl", context.now)
        context.say(f"  {tally(recording.summary.captures, 'capture')} in {recording.path}")
        paths = [recording.path]
    context.say("ingesting ...")
    order = ingest.Order(tuple(map(File.of, paths)), ingest.collection_sets(["demo"]), Rules())
    passing = work.folder_of(store.root / layout.TEMPORARY, None)
    with work.opened(passing) as held, Progress(order.bytes, len(order.files)) as bar:
        name = intake.run_name(context.now())
        run_ = ingest.ingest(store, order, held, ingest.Means(bar), name).run
    context.say("publishing ...")
    libraries = {"publicsuffixlist": domain.version()}
    outside = Surroundings(context.now, context.sleep, lambda text: None, libraries)
    built = publish(store, settings, outside, trial.digests(settings))
    repository = DuckRepository(store)
    application = Application(repository, settings, context.now)
    server = LocalServer(application, "127.0.0.1", arguments.port, threads=4)
    base = server.url
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    context.say(f"harvesting {base}/oai ...")
    try:
        harvested = harvest(f"{base}/oai")
        context.result(
            _account(run_, built, harvested, folder, base, once=arguments.once),
            _document(run_, built, harvested, base),
        )
        if harvested.records != built.records:
            context.say(
                f"sheaf: {tally(built.records, 'record')} published, {harvested.records} harvested"
            )
            return 1
        if not arguments.once:
            thread.join()
    except KeyboardInterrupt:
        context.say("stopped")
    finally:
        server.close()
        thread.join()
        repository.close()
    return 0


def _folder(folder: Path) -> Path:
    """Return the demo's folder, emptied; one that no demo made is not touched."""
    if folder.exists():
        if not (folder / _MARK).exists():
            raise UsageError(f"{folder} is not a demo's: choose another by --folder")
        shutil.rmtree(folder)
    try:
        folder.mkdir(parents=True)
        (folder / _MARK).touch()
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from error
    return folder


def _account(
    run: intake.Run,
    built: Built,
    harvested: HarvestSummary,
    folder: Path,
    base: str,
    *,
    once: bool,
) -> str:
    skips: Counter[str] = Counter()
    for source in run.sources:
        skips.update(source.skips)
    passed = ", ".join(f"{n} {reason}" for reason, n in skips.most_common()) or "none"
    faults = sum(source.faults for source in run.sources)
    sets = built.manifest.sets if built.manifest else 0
    sheaf = sys.argv[0]
    lines = [
        "",
        f"  captures    {built.new:,} published from {tally(len(run.sources), 'archive file')}, "
        f"{tally(built.records, 'record')} with the collections'",
        f"  left out    {passed}",
        f"  faults      {faults}",
        f"  sets        {sets:,}",
        f"  harvested   {tally(harvested.records, 'record')}, each once, "
        f"in {tally(harvested.pages, 'page')} and {harvested.seconds:.2f} s over HTTP",
        "",
    ]
    if once:
        lines.append(f"  serve       {sheaf} serve --config {folder}/sheaf.toml")
    else:
        lines.append(f"  open        {base}/")
        lines.append(f"  harvest     {base}/oai?verb=ListRecords&metadataPrefix=oai_dc")
    question = f'--store {folder}/store "SELECT url, title FROM captures"'
    lines.append(f"  ask         {sheaf} query {question}")
    if not once:
        lines += ["", "  Ctrl-C ends it."]
    return "\n".join(lines)


def _document(
    run: intake.Run, built: Built, harvested: HarvestSummary, base: str
) -> dict[str, object]:
    return {
        "captures": built.new,
        "records": built.records,
        "sources": len(run.sources),
        "faults": sum(source.faults for source in run.sources),
        "sets": built.manifest.sets if built.manifest else 0,
        "harvested": harvested.records,
        "pages": harvested.pages,
        "oai": f"{base}/oai",
    }
