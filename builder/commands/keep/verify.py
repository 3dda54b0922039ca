"""`sheaf verify`."""

import argparse
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from builder.arguments import declare
from builder.errors import UsageError, explaining
from builder.outputs.log.bundle import (
    ProofBundle,
    describe_verdict,
    verdict_document,
    verify_bundle,
)
from builder.outputs.log.note import ProofError, VerifierKey, open_checkpoint
from builder.progress import show_bytes
from builder.store.context import Context
from builder.store.s3 import open_store
from builder.store.web_store import WebStore
from builder.verify.archives import archive_findings
from builder.verify.choice import Sample, StorePart
from builder.verify.comparison import compare
from builder.verify.report import (
    choose_part,
    comparison_document,
    comparison_text,
    make_report,
    record,
    report_document,
    report_text,
)
from builder.verify.verify import VerifyRuntime, verify
from functions.snapshot.store import Reader, Writer


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "--newest": "check only the newest snapshot",
            "--sample PERCENT": "read this percentage of the data files; check only existence and "
            "size of the others",
            "--seed N": "seed of the sample (default: random)",
            "--part K/N": "read part K of N, such as 3/30; only list the objects of the other "
            "parts. next/N is the part that was recorded longest ago",
            "--against STORE": "compare with a copy at this address, object by object, and check "
            "nothing else",
            "--record": "add the report to fixity.jsonl in the store, which the pages show",
            "--repair": "rewrite views.sql, current.json and snapshots/newest.json from the rest "
            "of the store if they are damaged, missing or old",
        },
    )
    declare(
        parser.add_argument_group("signed snapshots"),
        {
            "--key VKEY... as keys": "a verifier key that must have signed the log or the bundle; "
            "may be repeated",
            "--checkpoint FILE": "an earlier log/checkpoint, or a bundle: the log must continue it",
            "--bundle FILE": "check this bundle of `sheaf prove`, without a store",
        },
    )


def run(context: Context) -> int:
    """Check that the store is complete and consistent.

    Every kept snapshot is checked to the last byte, and in the obi store every run and object. Exit
    status 1 means damage; leftovers are only reported.
    """
    arguments = context.arguments
    try:
        keys = [*map(VerifierKey.parse, arguments.keys)] or None
    except ProofError as error:
        raise UsageError(f"--key: {error}") from error
    if arguments.bundle is not None:
        return _verify_bundle(context, keys)
    earlier = None if arguments.checkpoint is None else _read_checkpoint(arguments.checkpoint, keys)
    runtime = VerifyRuntime(
        context.now, show_bytes, context.configuration["publish.memory"], os.cpu_count() or 1
    )
    if (arguments.repair or arguments.record) and isinstance(context.store, WebStore):
        context.store.refuse_write()
    if arguments.record and arguments.newest:
        raise UsageError("--record and --newest exclude each other: it would not check all")
    store, began = context.published_store(), context.now()
    choice = _choice(arguments.sample, arguments.seed, arguments.part, store)
    if arguments.against is not None:
        return _compare(context, store, choice)
    done = verify(
        store,
        runtime,
        newest_only=arguments.newest,
        choice=choice,
        repair=arguments.repair,
        keys=arguments.keys or None,
        checkpoint=earlier,
    )
    of_archives = [] if arguments.newest else archive_findings(context, store)
    done = replace(done, findings=(*done.findings, *of_archives))
    if arguments.record:
        record(store, make_report(done, choice, began, context.now()))
    context.result(report_text(done, choice), report_document(context.store.address, done, choice))
    return 1 if done.damaged else 0


def _compare(
    context: Context,
    store: Writer,
    choice: Sample | StorePart | None,
) -> int:
    arguments = context.arguments
    if arguments.newest or arguments.repair or arguments.record or arguments.checkpoint:
        raise UsageError("--against excludes --newest, --repair, --record and --checkpoint")
    copy = open_store(arguments.against, Path.cwd(), context.configuration, context.environment)
    if isinstance(copy, WebStore) or isinstance(context.store, WebStore):
        raise UsageError("--against needs two stores that can be listed: folders or buckets")
    if copy.address == store.address:
        raise UsageError(f"{copy.address} is the store itself: name a copy of it")
    done = compare(store, copy, context.now, show_bytes, choice, arguments.keys or None)
    document = comparison_document(store.address, copy.address, done)
    context.result(comparison_text(done), document)
    return 1 if done.findings else 0


def _read_checkpoint(name: str, keys: Sequence[VerifierKey] | None) -> str:
    """Return the text of the checkpoint in a file or in a bundle. Raises UsageError."""
    with explaining(name, "read"):
        data = Path(name).read_bytes()
    try:
        text = ProofBundle.parse(data).checkpoint if data[:1] == b"{" else data.decode("utf-8")
        open_checkpoint(text, keys)
    except (ProofError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: {error}") from error
    return text


def _verify_bundle(context: Context, keys: Sequence[VerifierKey] | None) -> int:
    """Check a bundle, and say what it proves."""
    name = context.arguments.bundle
    if keys is None:
        raise UsageError("--bundle needs --key: without one, anybody may have written the bundle")
    with explaining(name, "read"):
        data = Path(name).read_bytes()
    try:
        verdict = verify_bundle(ProofBundle.parse(data), keys)
    except ProofError as error:
        context.result(f"{name} proves nothing: {error}", {"proved": False, "problem": str(error)})
        return 1
    context.result(describe_verdict(verdict), verdict_document(verdict))
    return 0


def _choice(
    percent: float | None, seed: int | None, part: str | None, store: Reader
) -> Sample | StorePart | None:
    if part is not None:
        if percent is not None or seed is not None:
            raise UsageError("--part and --sample exclude each other")
        return choose_part(part, store)
    if percent is None:
        if seed is not None:
            raise UsageError("--seed needs --sample PERCENT")
        return None
    if not 0 < percent <= 100:
        raise UsageError(f"--sample {percent:g}: expected a number above 0 and up to 100")
    return Sample(percent, secrets.randbelow(1 << 31) if seed is None else seed)
