"""`sheaf demo`."""

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from builder.context import Context
from builder.demo import papers, record
from builder.demo.change import Sequel, sequel
from builder.demo.fetching import archived
from builder.demo.harvesting import Crop, Field
from builder.demo.repec import Exhibit, Taken, exhibit
from builder.demo.restoring import Keepsake, keepsake
from builder.demo.serving import served
from builder.display import tally
from builder.errors import UsageError
from builder.filesets.entry import entry
from builder.filesets.item import Outcome
from builder.ingest import ingest, splits, workdir
from builder.ingest.splits import File
from builder.intake import intake
from builder.obi.run import Outside
from builder.progress import Progress
from builder.publish.publish import publish
from builder.runtime import Surroundings
from builder.snapshot.transaction import Built
from builder.sources import domain
from builder.sources.event import Rules
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.config.configuration import Configuration
from functions.oai.render import check
from functions.snapshot import layout
from functions.snapshot.identifier import to_oai

_MARK = ".sheaf-demo"
_SETTINGS = {
    "repository.name": "Sheaf's demonstration",
    "repository.admin_emails": ["demo@example.org"],
    "repository.namespace": "demo.example.org",
    "pages.records": 20,
    "publish.lead": 1,
    "serve.clock_allowance": 1,  # one machine has one clock
    "fileset.strategy": "s3",  # files of datasets as objects of the store, not within a WARC
    "http.host_seconds": 0,  # the host is this machine
    "content.serve": True,
    "sets.names": {"collection:demo": "Collection of the demonstration"},
}


_HOST = "www.example.org"
"""The host of the recorded site that is restored."""
_PAUSE = 2.0
"""Seconds after which a `responseDate`, less the clocks' allowance, is behind the publish."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What all of it is made in, and the run of the intake that was ingested first."""

    store: FolderStore
    settings: Configuration
    folder: Path
    run: intake.Run


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="archive files of your own")
    parser.add_argument("--folder", default="demo-store", help="where it all goes; made anew")
    parser.add_argument("--port", type=int, default=8080, help="port to serve at; 0 for any")
    parser.add_argument("--once", action="store_true", help="end after the account")


def run(context: Context) -> int:
    """Show every step here: record, publish, serve, harvest, restore.

    Without files of your own a small RePEc archive comes along, and is changed then; and a site is
    restored out of the archive.
    """
    arguments = context.arguments
    sources = list(arguments.sources)
    paths = splits.find(sources)  # a fault of the user is told before anything is made
    folder = _folder(Path(arguments.folder))
    places = list(dict.fromkeys(str(path.resolve().parent) for path in paths))
    given = {**_SETTINGS, "content.archives": places or [str((folder / "crawl").resolve())]}
    (folder / "sheaf.toml").write_text(configuration.template(given), "utf-8")
    settings = configuration.parse((folder / "sheaf.toml").read_text("utf-8"), {})
    store = FolderStore((folder / "store").resolve())
    if not sources:
        context.say("recording a small site over HTTP, twice ...")
        recording = record(folder / "crawl", context.now)
        context.say(f"  {tally(recording.summary.captures, 'capture')} in {recording.path}")
        paths = [recording.path]
    context.say("ingesting ...")
    run_ = _ingested(context, store, paths)
    with ExitStack() as stack:
        shown: Exhibit | None = None
        if not sources:
            outside = Outside(context.now, context.sleep, context.say)
            shown = stack.enter_context(exhibit(store, outside, folder / "RePEc"))
        return _shown(context, Demo(store, settings, folder, run_), shown)


def _shown(context: Context, demo: Demo, shown: Exhibit | None) -> int:
    arguments = context.arguments
    taken: Taken | None = None
    dataset: Outcome | None = None
    if shown:
        context.say(f"ingesting a small RePEc archive, gathering its files from {shown.base} ...")
        taken = shown.take_in()
        context.say("asking for a dataset of a platform on this machine ...")
        dataset = archived(demo.store, demo.settings, context.now, demo.folder / "datasets")
    context.say("publishing ...")
    publish_ = partial(_published, context, demo)
    built = publish_()
    with served(demo.store, demo.settings, context.now, arguments.port) as (base, thread):
        try:
            if shown:
                context.sleep(_PAUSE)
            context.say(f"harvesting {base}/oai ...")
            field = Field(f"{base}/oai", demo.folder / "harvest", context.now)
            harvested = field.harvest()
            told: Sequel | None = None
            kept: Keepsake | None = None
            if shown and built.manifest and dataset:
                context.say("changing the archive, and all of that once more ...")
                prefix = built.manifest.prefix
                name = to_oai(built.manifest.namespace, entry(dataset).identity or "")
                told = sequel(shown, publish_, field, prefix, name)
                context.say(f"restoring {_HOST} ...")
                kept = keepsake(base, _HOST, demo.folder / "site")
            account = Account(demo, built, harvested, taken, told, dataset, kept)
            context.result(account.text(base, once=arguments.once), account.document(base))
            if problem := account.problem():
                context.say(f"sheaf: {problem}")
                return 1
            if not arguments.once:
                thread.join()
        except KeyboardInterrupt:
            context.say("stopped")
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


def _ingested(context: Context, store: FolderStore, paths: Sequence[Path]) -> intake.Run:
    order = ingest.Order(tuple(map(File.of, paths)), ingest.collection_sets(["demo"]), Rules())
    passing = workdir.folder_of(store.root / layout.TEMPORARY, None)
    with workdir.opened(passing) as held, Progress(order.bytes, len(order.files)) as bar:
        name = intake.run_name(context.now())
        run_ = ingest.ingest(store, order, held, ingest.Means(bar), name).run
    if not any(source.captures for source in run_.sources):
        raise UsageError("there is no capture in these files: the demo has nothing to show")
    return run_


def _published(context: Context, demo: Demo) -> Built:
    libraries = {"publicsuffixlist": domain.version()}
    outside = Surroundings(context.now, context.sleep, lambda text: None, libraries)
    return publish(demo.store, demo.settings, outside, check.digests(demo.settings))


@dataclass(frozen=True, slots=True)
class Account:
    """What the demo came to; `taken` and `told` are of the RePEc archive, where there is one.

    So is `dataset`, what came of asking for one, and `kept`, what was restored.
    """

    demo: Demo
    built: Built
    harvested: Crop
    taken: Taken | None
    told: Sequel | None
    dataset: Outcome | None = None
    kept: Keepsake | None = None

    def problem(self) -> str | None:
        """Return what is not as it should be, None if all is."""
        if self.harvested.records != self.built.records:
            published = tally(self.built.records, "record")
            return f"{published} published, {self.harvested.records} harvested"
        if self.dataset and self.dataset.status != "success":
            return f"the dataset is {self.dataset.status}: {self.dataset.detail}"
        if self.told and (found := self.told.problem()):
            return found
        return self.kept.problem() if self.kept else None

    def text(self, base: str, *, once: bool) -> str:
        """Return it for people."""
        skips: Counter[str] = Counter()
        sources = self.demo.run.sources
        for source in sources:
            skips.update(source.skips)
        passed = ", ".join(f"{n} {reason}" for reason, n in skips.most_common()) or "none"
        faults = sum(source.faults for source in sources)
        harvested = self.harvested
        lines = [
            "",
            f"  captures    {self._captures():,} published from "
            f"{tally(len(sources), 'archive file')}, "
            f"{tally(self.built.records, 'record')} with all others'",
            f"  left out    {passed}",
            f"  faults      {faults}",
        ]
        if self.taken:
            lines.append(
                f"  templates   {self.taken.ingested.appearances} of a RePEc archive, "
                f"{tally(self.taken.files, 'full text')} gathered over HTTP"
            )
        if self.dataset and self.dataset.archived:
            files = tally(len(self.dataset.archived.manifest), "file")
            lines.append(f"  datasets    1 of a platform, {files} verified and archived")
        lines += [
            f"  sets        {self._sets():,}",
            f"  harvested   {tally(harvested.records, 'record')}, each once, "
            f"in {tally(harvested.pages, 'page')} and {harvested.seconds:.2f} s over HTTP",
        ]
        if self.kept:
            files = tally(self.kept.account.restored, "file")
            lines.append(f"  restored    {self.kept.host}: {files} verified, links led within it")
        lines.append("")
        if self.told:
            lines += [*self.told.lines(), ""]
        return "\n".join([*lines, *self._next(base, once=once)])

    def _next(self, base: str, *, once: bool) -> list[str]:
        """Return what can be done now."""
        sheaf, folder = sys.argv[0], self.demo.folder
        store = f"--store {folder}/store"
        asks = [f'  ask         {sheaf} query {store} "SELECT url, title FROM captures"']
        if self.told:
            asks.append(f"  look back   {sheaf} obi {store} {papers.CHANGED}")
        if self.kept:
            asks.append(f"  look at     {self.kept.page.resolve().as_uri()}")
        if once:
            return [f"  serve       {sheaf} serve --config {folder}/sheaf.toml", *asks]
        return [
            f"  open        {base}/",
            f"  harvest     {base}/oai?verb=ListRecords&metadataPrefix=oai_dc",
            *asks,
            "",
            "  Ctrl-C ends it.",
        ]

    def document(self, base: str) -> dict[str, object]:
        """Return it as --json prints it."""
        sources = self.demo.run.sources
        document: dict[str, object] = {
            "captures": self._captures(),
            "records": self.built.records,
            "sources": len(sources),
            "faults": sum(source.faults for source in sources),
            "sets": self._sets(),
            "harvested": self.harvested.records,
            "pages": self.harvested.pages,
            "oai": f"{base}/oai",
        }
        if self.taken and self.told:
            document["repec"] = {
                "templates": self.taken.ingested.appearances,
                "files": self.taken.files,
                **self.told.document(),
            }
        if self.dataset:
            document["dataset"] = self.dataset.status
        if self.kept:
            document["restored"] = self.kept.account.document()
        return document

    def _captures(self) -> int:
        return self.built.manifest.kinds().get("capture", 0) if self.built.manifest else 0

    def _sets(self) -> int:
        return self.built.manifest.sets if self.built.manifest else 0
