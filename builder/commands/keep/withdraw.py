"""`sheaf withdraw`."""

import argparse

from builder.arguments import declare
from builder.errors import UsageError
from builder.publish import withdraw
from builder.publish import withdrawal_report as report
from builder.publish.selection import (
    Selection,
    is_reversed,
    parse_date,
    parse_digest,
    parse_option,
    parse_url_prefix,
)
from builder.store.context import Context
from functions.config.configuration import Configuration
from functions.snapshot import oai_name


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_selection(parser)
    declare(
        parser,
        {
            "--reason TEXT": "reason; stored in the snapshot, not served",
            "--purge": "also retire all older snapshots that still contain their metadata",
        },
    )


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select items, and --dry-run."""
    declare(
        parser.add_argument_group("selection of items (all conditions must hold)"),
        {
            "--identifier ID...": "an OAI identifier, or a template's handle; may be repeated",
            "--set SPEC": "a set and its subsets",
            "--url-prefix URL": "captures whose URL has this prefix",
            "--digest SHA1": "captures with this payload digest",
            "--from DATE as start": "captured at or after this date, such as 2007",
            "--until DATE as end": "captured up to this date, such as 2007-11-05",
        },
    )
    declare(parser, {"--dry-run": "only show the selected items"})


def run(context: Context) -> int:
    """Withdraw items: replace them with tombstones that have a reason.

    Their titles, URLs and metadata vanish from the current data files. A tombstone keeps
    identifier, sets and reason, even if the item is ingested again. `sheaf reinstate` undoes it.
    """
    arguments = context.arguments
    chosen = selection(arguments, context.configuration)
    store, settings, runtime = context.store, context.configuration, context.runtime()
    if arguments.dry_run:
        most = None if arguments.json else report.SHOWN
        preview = withdraw.preview_selection(store, settings, runtime, chosen, most)
        context.result(report.preview_text(preview), report.preview_document(preview))
        return 0
    reason = (arguments.reason or "").strip()
    if not reason or not arguments.reason.isprintable():
        raise UsageError(
            "--reason is missing: give the reason in one line; it is stored in the snapshot"
        )
    done = withdraw.withdraw(store, settings, runtime, chosen, reason, purge=arguments.purge)
    context.result(report.text(done), report.document(done))
    return 0


def selection(arguments: argparse.Namespace, settings: Configuration) -> Selection:
    """Return the items that the options select. Raises UsageError."""
    start = parse_option("--from", arguments.start, parse_date)
    end = parse_option("--until", arguments.end, parse_date)
    if start and end and is_reversed(start, end):
        raise UsageError(f"--from {start} is later than --until {end}")
    if arguments.set is not None and not oai_name.is_set(arguments.set):
        raise UsageError(f"--set {arguments.set} is not a set specification")
    criteria = (arguments.identifier, arguments.set, arguments.url_prefix, arguments.digest)
    if not any(criteria):
        raise UsageError("no items selected: give --identifier, --set, --url-prefix or --digest")
    return Selection(
        tuple(_identifier(name, settings) for name in arguments.identifier),
        arguments.set,
        parse_option("--url-prefix", arguments.url_prefix, parse_url_prefix),
        parse_option("--digest", arguments.digest, parse_digest),
        start,
        end,
    )


def _identifier(name: str, settings: Configuration) -> str:
    """Return an identifier unchanged, or for a handle the identifier of its template."""
    handle = oai_name.canonical_handle(name)
    if not handle.startswith(("RePEc:", "ReLIS:", "mapin:")):
        return name
    namespace = str(settings["repository.namespace"])
    begin = str(settings["redif.identifier_prefix"]) or oai_name.to_oai(namespace, "")
    return oai_name.template_identifier(begin, handle)
