"""`sheaf export`."""

import argparse
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from builder.context import Context
from builder.display import tally
from builder.errors import UsageError
from builder.export import bagit, captures, obi_objects, ocfl_root, warc
from builder.export.opening import Opened, open_obi
from builder.export.parcel import parcel
from builder.export.store_copy import export
from builder.obi.run import Committed
from builder.progress import Bytes, Phase
from builder.store.folder import FolderStore
from builder.store.location import open_store
from functions.database import engine
from functions.snapshot.errors import NothingPublished


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to", metavar="STORE", help="copy the store there")
    to.add_argument("--ocfl", metavar="DIR", help="templates and files as objects of OCFL 1.1")
    to.add_argument("--bagit", metavar="DIR", help="a bag for each run of ingest and gather")
    to.add_argument("--warc", metavar="FILE|DIR", help="the files behind URLs as WARC/1.1")
    to.add_argument("--wacz", metavar="FILE", help="captures as a WACZ file, which replays")
    to.add_argument("--cdxj", metavar="FILE", help="an index of captures; gzip if it ends with .gz")
    parser.add_argument("--newest", action="store_true", help="--to: the newest snapshot alone")
    parser.add_argument(
        "--run",
        type=int,
        action="append",
        dest="runs",
        metavar="TIST",
        help="--bagit, --warc: this run alone; may be repeated",
    )
    captures.add(parser)


def run(context: Context) -> int:
    """Copy the store to another place, or put what it holds into the formats of archives.

    Run again, it brings what it made up to date, but for a WACZ file and an index, which are made
    anew, of captures of the newest snapshot, all of them or those that are described. Each object's
    content is checked on the way. The intake is not copied.
    """
    arguments = context.arguments
    if arguments.newest and arguments.to is None:
        raise UsageError("--newest goes with --to alone")
    if arguments.runs and arguments.bagit is None and arguments.warc is None:
        raise UsageError("--run goes with --bagit or --warc")
    if (to := arguments.cdxj if arguments.wacz is None else arguments.wacz) is not None:
        if to in ("", "-"):
            raise UsageError("--wacz and --cdxj write a file: name one")
        return captures.run(context, _target(context, to))
    if captures.is_described(arguments):
        raise UsageError("--set, --url, --as-of, --where and --title go with --wacz or --cdxj")
    if arguments.to is not None:
        return _copy(context)
    with _opened(context) as (runs, connection):
        if arguments.ocfl is not None:
            return _ocfl(context, connection)
        chosen = _chosen(runs, arguments.runs)
        if arguments.bagit is not None:
            return _bagit(context, chosen, connection)
        return _warc(context, chosen, connection)


def _opened(context: Context) -> AbstractContextManager[Opened]:
    memory = context.configuration["publish.memory"]
    return open_obi(context.begun_store(), memory, os.cpu_count() or 1)


def _chosen(runs: Sequence[Committed], asked: Sequence[int] | None) -> Sequence[Committed]:
    strangers = set(asked or ()) - {run.tist for run in runs}
    if strangers:
        raise UsageError(f"--run {min(strangers)}: the store has no such run that was committed")
    return [run for run in runs if not asked or run.tist in asked]


def _ocfl(context: Context, connection: engine.Connection) -> int:
    target = _target(context, context.arguments.ocfl)
    user = {"name": "sheaf", "address": f"mailto:{_email(context)}"}
    with Phase("exporting", obi_objects.count(connection), " objects") as advance:
        done = ocfl_root.export(
            context.store, obi_objects.objects(connection), target, user, advance
        )
    text = (
        f"{target}: {tally(done.objects, 'object')} and {tally(done.versions, 'version')} added "
        f"({tally(done.bytes, 'byte')}); {tally(done.there, 'was there', 'were there')}"
    )
    context.result(text, {"store": context.store.address, "ocfl": str(target), **asdict(done)})
    return 0


def _bagit(context: Context, runs: Sequence[Committed], connection: engine.Connection) -> int:
    target = _target(context, context.arguments.bagit)
    sender = {
        "Source-Organization": context.configuration["repository.name"],
        "Contact-Email": _email(context),
    }
    bags = [parcel(context.store, connection, run, sender) for run in runs]
    with Phase("exporting", len(bags), " bags") as advance:
        done = bagit.export(bags, target, context.now().date(), advance)
    text = (
        f"{target}: {tally(done.bags, 'bag')} added with {tally(done.files, 'file')} "
        f"({tally(done.bytes, 'byte')}); {tally(done.there, 'was there', 'were there')}"
    )
    context.result(text, {"store": context.store.address, "bagit": str(target), **asdict(done)})
    return 0


def _warc(context: Context, runs: Sequence[Committed], connection: engine.Connection) -> int:
    target = _target(context, context.arguments.warc)
    gathered = obi_objects.gather_runs(connection)
    found = [
        warc.FetchedFile(run.tist, partial(obi_objects.sightings, connection, run.tist))
        for run in runs
        if run.tist in gathered
    ]
    if not found:
        raise NothingPublished(
            f"{context.store.address}: these runs found no file behind a URL: run `sheaf gather`"
        )
    with Phase("exporting", len(found), " runs") as advance:
        done = warc.export(context.store, found, target, advance)
    text = (
        f"{target}: {tally(done.files, 'WARC file')} written with "
        f"{tally(done.resources, 'resource')} and {tally(done.revisits, 'revisit')}; "
        f"{tally(done.there, 'was there', 'were there')}"
    )
    context.result(text, {"store": context.store.address, "warc": str(target), **asdict(done)})
    return 0


def _target(context: Context, given: str) -> Path:
    """Return where to write to, which is no place of the store itself."""
    target, store = Path(given).resolve(), context.store
    if isinstance(store, FolderStore) and target.is_relative_to(store.root):
        raise UsageError(f"{given} lies in the store itself: name another place")
    return target


def _email(context: Context) -> str:
    return str(context.configuration["repository.admin_emails"][0])


def _copy(context: Context) -> int:
    arguments = context.arguments
    target = open_store(arguments.to, Path.cwd(), context.configuration, context.environment)
    if target.address.startswith(f"{context.store.address.rstrip('/')}/"):
        raise UsageError(f"--to {arguments.to} lies in the store itself: name another place")
    done = export(
        context.store,
        target,
        context.surroundings(),
        newest_only=arguments.newest,
        progress=Bytes,
    )
    text = (
        f"{target.address} has {tally(len(done.snapshots), 'snapshot')} "
        f"up to {done.snapshots[-1]}: "
        f"{tally(done.objects, 'object')} copied ({tally(done.bytes, 'byte')}), "
        f"{tally(done.there, 'was there', 'were there')}"
    )
    if done.retired:
        text += f"; {tally(len(done.retired), 'snapshot')} retired there as well"
    document = {
        "store": context.store.address,
        "to": target.address,
        "snapshots": list(done.snapshots),
        "objects": done.objects,
        "bytes": done.bytes,
        "there": done.there,
        "retired": list(done.retired),
    }
    context.result(text, document)
    return 0
