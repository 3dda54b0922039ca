"""`sheaf export wacz`."""

import argparse

from builder.context import Context
from builder.export import captures


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="the file to write, which is not there yet")
    add_selection(parser)
    parser.add_argument("--title", metavar="TEXT", help="the title of the file")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select captures."""
    which = parser.add_argument_group("which captures (all conditions must be met)")
    which.add_argument("--set", metavar="SPEC", help="those of a set, with all sets below it")
    which.add_argument(
        "--url", metavar="PREFIX", help="those whose URL begins like that, from http:// on"
    )
    which.add_argument(
        "--as-of", metavar="DATE", help="of each URL the last one up to this date, as 2007-11-05"
    )
    which.add_argument(
        "--where", metavar="SQL", help="those that meet a condition over the view `captures`"
    )


def run(context: Context) -> int:
    """Write captures as one WACZ file, which replays.

    The captures are those of the newest snapshot, either all or those that the options select.
    """
    return captures.export_wacz(context, captures.excerpt(context.arguments))
