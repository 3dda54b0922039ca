"""`sheaf expire`."""

import argparse
import re
from dataclasses import asdict
from datetime import timedelta

from builder.arguments import declare
from builder.errors import UsageError
from builder.outputs.follow import expire, open_outputs, update_outputs
from builder.publish.purge import complete_purges
from builder.snapshot.template_changes import complete_records
from builder.store.context import Context
from builder.text import tally

_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "--keep N": "always keep the newest N snapshots",
            "--older-than AGE": "retire only snapshots superseded longer ago than this: 90m, 36h, "
            "14d, 8w",
        },
    )


def run(context: Context) -> int:
    """Retire old snapshots, and delete objects that no kept snapshot needs.

    What an interrupted command left undone is completed first. A snapshot that the pointer names
    is always kept. Harvests with a token of a retired snapshot
    continue in the current one, by position.
    """
    arguments = context.arguments
    if arguments.keep is None and arguments.older_than is None:
        raise UsageError("nothing selected: give --keep N, --older-than AGE, or both")
    keep = 1 if arguments.keep is None else arguments.keep
    if keep < 1:
        raise UsageError(f"--keep {keep}: expected a number from 1")
    age = timedelta(0)
    if arguments.older_than is not None:
        match = _AGE.fullmatch(arguments.older_than)
        if not match:
            raise UsageError(
                f"--older-than {arguments.older_than}: expected a number with s, m, h, d or w, "
                "as 14d"
            )
        age = timedelta(**{_UNITS[match[2]]: int(match[1])})
    store, settings, runtime = context.published_store(), context.configuration, context.runtime()
    updates = open_outputs(settings)
    complete_records(store)
    update_outputs(store, runtime, updates)
    complete_purges(store, settings, runtime)
    done = expire(store, runtime, keep, age)
    gone, left = len(done.retired), len(done.kept)
    text = (
        f"{tally(gone, 'snapshot')} retired, {left:,} kept; {tally(done.objects, 'object')} removed"
    )
    if arguments.older_than is None and left > keep:
        text += (
            f"\nmore than {keep:,} kept, because readers use them until a minute after a publish: "
        )
        text += "expire again later"
    context.result(text, asdict(done))
    return 0
