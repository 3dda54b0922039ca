"""`sheaf restore`."""

import argparse
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path

from builder.arguments import declare
from builder.errors import UsageError
from builder.exports.restore import captures, datasets, sources
from builder.exports.restore.folder import RestoreFolder
from builder.exports.restore.manifest import ManifestEntries, RestoreReport, of_file
from builder.exports.restore.names import MANIFEST
from builder.exports.restore.plan import Plan
from builder.exports.restore.session import RestoreJob, RestoreSession
from builder.progress import PartsProgress, ProgressBar
from builder.sources.datasets.platforms.json_document import handle_of
from builder.store.context import Context
from builder.text import tally, visible
from functions.snapshot.surt import METHOD
from functions.store.scratch import Scratch

_JOBS = 4
_LARGEST = 1 << 31


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "source SOURCE": "a store, the URL of a served one, or the DOI or identifier of a "
            "dataset",
            "dir DIR": "target folder; an existing restore is resumed",
            "--set SPEC": "only captures of this set",
            "--url URL... as urls": "only URLs with this prefix; a host for the whole host, "
            "*.host for its subdomains too; may be repeated",
            "--as-of DATE": "state at this date (default: the latest)",
            "--status LIST": "HTTP statuses of captures to restore (default: %(default)s)",
            "--convert-links": "convert links in pages to the restored files",
            "--adjust-extension": "add extensions such as .html to names without one; implied by "
            "--convert-links",
            "--hardlink": "store files with the same bytes once",
            "--jobs N": "files at once",
            "--max-bytes N": "size limit of a file in bytes (default: %(default)s)",
            "--dry-run": "show what would be restored, and write nothing",
            "--list": "also list the files, with --dry-run",
        },
        status={"default": captures.USUAL_STATUSES},
        jobs={"default": _JOBS},
        max_bytes={"default": _LARGEST},
    )
    declare(
        parser.add_argument_group("datasets"),
        {
            "--version VERSION": "a version, by its number on the platform or its label (default: "
            "the newest)",
            "--safe-names": "file names that are valid on every system instead of the platform's",
        },
    )


def run(context: Context) -> int:
    """Restore a site from the archive to disk.

    A repeated run continues. The last capture of each URL is restored, redirects are followed, and
    bytes are verified. manifest.jsonl has the result of each URL. Of a dataset, all files are
    restored under their names and verified.
    """
    arguments = context.arguments
    if handle_of(arguments.source) is not None or arguments.source.startswith("oai:"):
        return _restore_dataset(context)
    if arguments.version or arguments.safe_names:
        raise UsageError("--version and --safe-names are for datasets: name one as SOURCE")
    if arguments.jobs < 1 or arguments.max_bytes < 0:
        raise UsageError("--jobs must be from 1, and --max-bytes from 0")
    for url in arguments.urls:
        captures.parse_scope(url)  # errors are reported before any request
    until = captures.until_date(arguments.as_of) if arguments.as_of else captures.LAST_SECOND
    choice = captures.CaptureFilter(arguments.set, tuple(arguments.urls), until)
    requests = any(f"{METHOD}=" in url for url in arguments.urls)
    accepts = captures.accept_statuses(arguments.status, requests=requests)
    with ExitStack() as stack:
        scratch, stop = stack.enter_context(closing(Scratch())).path, threading.Event()
        source = stack.enter_context(closing(_source(context, stop)))
        plan = stack.enter_context(closing(Plan(scratch, accepts)))
        _choose(source, choice, plan)
        links = arguments.convert_links
        plan.settle(extended=links or arguments.adjust_extension, sought=links)
        if arguments.list or arguments.dry_run:
            return _foretold(context, source, plan)
        folder = stack.enter_context(closing(RestoreFolder(Path(arguments.dir))))
        entries = stack.enter_context(closing(ManifestEntries(scratch)))
        job = RestoreJob(
            arguments.jobs, arguments.max_bytes, arguments.convert_links, arguments.hardlink
        )
        with PartsProgress("files", *plan.count()) as bar:
            session = RestoreSession(
                source, plan, folder, entries, job, bar.end_part, stop, bar.part
            )
            report = session.restore()
    return _print_result(context, source, report)


def _restore_dataset(context: Context) -> int:
    arguments, folder = context.arguments, Path(context.arguments.dir)
    identifier = datasets.find_dataset(
        context.published_store(), arguments.source, arguments.version
    )
    with ExitStack() as stack:
        archive = stack.enter_context(datasets.open_datasets(context))
        record = archive.record(identifier)
        files = record.fields.get("files") or ()
        size = sum(int(file["bytes"]) for file in files)
        bar = stack.enter_context(PartsProgress("files", len(files), size))
        done = datasets.restore_dataset(
            record, archive.slices, folder, bar, safe=arguments.safe_names
        )
    for path, reason in done.missing.items():
        context.say(visible(f"missing: {path}: {reason}"))
    parts = [
        f"{tally(done.restored, 'file')} restored ({tally(done.bytes, 'byte')})",
        tally(done.kept, "was there", "were there") if done.kept else "",
        f"{done.withheld:,} withheld by the platform" if done.withheld else "",
        f"{len(done.missing):,} missing" if done.missing else "",
    ]
    text = f"{arguments.dir}: {', '.join(filter(None, parts))}, of {identifier}"
    context.result(visible(text), {"dir": arguments.dir, **asdict(done)})
    return 1 if done.missing else 0


def _source(context: Context, stop: threading.Event) -> captures.CaptureSource:
    arguments = context.arguments
    if arguments.store is not None:
        raise UsageError("--store is not used here: give the store as SOURCE")
    if sources.is_endpoint(arguments.source):
        return sources.open_source(context, arguments.source, stop)
    own = argparse.Namespace(**{**vars(arguments), "store": arguments.source})
    return sources.open_source(Context(own, context.environment), arguments.source)


def _choose(source: captures.CaptureSource, choice: captures.CaptureFilter, plan: Plan) -> None:
    """Add the matching captures to the plan. Raises captures.RebuildError if there are none."""
    with ProgressBar("choosing", None, " captures") as advance:

        def count(listed: Iterable[captures.ListedCapture]) -> Iterator[captures.ListedCapture]:
            for capture in listed:
                advance(1)
                yield capture

        seen = plan.add(count(source.captures(choice)))
        plan.follow(lambda url: count(source.of_url(url, choice.until)))
    if not seen:
        wanted = [f"--url {url}" for url in choice.urls]
        wanted += [f"--set {choice.set}"] if choice.set is not None else []
        text = f"{source.address}: no capture matches {' '.join(wanted)}"
        raise captures.RebuildError(text.rstrip())


def _foretold(context: Context, source: captures.CaptureSource, plan: Plan) -> int:
    arguments, report = context.arguments, RestoreReport()
    for file in plan.files():
        entry = of_file(file)
        report.add(replace(entry, size=max(file.length or 0, 0)))
        if arguments.list and arguments.json:
            fields = {name: value for name, value in asdict(entry).items() if value is not None}
            print(json.dumps(fields, ensure_ascii=False))
        elif arguments.list:
            print(visible(f"{file.stamp}  {file.status or '---'}  {file.url}  {file.path}"))
    report.redirects = sum(1 for _ in plan.redirects())
    if not arguments.list:
        text = (
            f"{source.address}: {tally(report.restored, 'file')} would be restored, with "
            f"{tally(report.bytes, 'byte')} declared; {tally(report.redirects, 'redirect')}, "
            f"{tally(report.renamed.total(), 'file')} under another name"
        )
        document = report.document()
        context.result(text, {"source": source.address, "dry_run": True, **document})
    return 0


def _print_result(context: Context, source: captures.CaptureSource, report: RestoreReport) -> int:
    arguments = context.arguments
    for what in ("renamed", "missing"):
        examples = report.examples.get(what, [])
        for url, text in examples:
            context.say(visible(f"{what}: {url}: {text}"))
        more = getattr(report, what).total() - len(examples)
        if more:
            context.say(f"{what}: {more:,} more, see {MANIFEST}")
    parts = [
        f"{tally(report.restored, 'file')} restored",
        f"{report.linked:,} linked" if report.linked else "",
        f"{report.converted:,} converted" if report.converted else "",
        tally(report.kept, "was there", "were there") if report.kept else "",
        f"{report.removed:,} removed" if report.removed else "",
        tally(report.redirects, "redirect") if report.redirects else "",
        f"{report.renamed.total():,} renamed" if report.renamed else "",
        f"{report.missing.total():,} missing" if report.missing else "",
    ]
    text = f"{arguments.dir}: {', '.join(filter(None, parts))} ({tally(report.bytes, 'byte')})"
    document = {"source": source.address, "dir": arguments.dir, **report.document()}
    context.result(text, document)
    return 1 if report.missing else 0
