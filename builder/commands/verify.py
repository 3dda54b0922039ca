"""`sheaf verify`."""

import argparse
import os
import secrets

from builder.context import Context
from builder.errors import UsageError
from builder.progress import show_bytes
from builder.store.web_store import WebStore
from builder.verify.choice import Sample, StorePart, parse_part
from builder.verify.report import report_document, report_text
from builder.verify.verify import VerifyRuntime, verify


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--newest", action="store_true", help="check only the newest snapshot")
    parser.add_argument(
        "--sample", type=float, metavar="PERCENT",
        help="read this percentage of the data files; check only existence and size of the others",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed of the sample (default: random)"
    )
    parser.add_argument(
        "--part", metavar="K/N",
        help="read part K of N, such as 3/30; only list the objects of the other parts",
    )  # fmt: skip
    parser.add_argument(
        "--repair", action="store_true",
        help="rewrite views.sql, current.json and snapshots/newest.json from the rest of the "
        "store if they are damaged, missing or old",
    )  # fmt: skip


def run(context: Context) -> int:
    """Check that the store is complete and consistent.

    Every kept snapshot is checked down to each row, and in the obi store every run and object. Exit
    status 1 means damage; leftovers are only reported.
    """
    arguments = context.arguments
    choice = _choice(arguments.sample, arguments.seed, arguments.part)
    means = VerifyRuntime(
        context.now, show_bytes, context.configuration["publish.memory"], os.cpu_count() or 1
    )
    if arguments.repair and isinstance(context.store, WebStore):
        context.store.refuse_write()
    done = verify(
        context.published_store(),
        means,
        newest_only=arguments.newest,
        choice=choice,
        repair=arguments.repair,
    )
    context.result(report_text(done, choice), report_document(context.store.address, done, choice))
    return 1 if done.damaged else 0


def _choice(percent: float | None, seed: int | None, part: str | None) -> Sample | StorePart | None:
    if part is not None:
        if percent is not None or seed is not None:
            raise UsageError("--part and --sample exclude each other")
        return parse_part(part)
    if percent is None:
        if seed is not None:
            raise UsageError("--seed needs --sample PERCENT")
        return None
    if not 0 < percent <= 100:
        raise UsageError(f"--sample {percent:g}: expected a number above 0 and up to 100")
    return Sample(percent, secrets.randbelow(1 << 31) if seed is None else seed)
