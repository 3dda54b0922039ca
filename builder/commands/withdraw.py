"""`sheaf withdraw`."""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from builder.context import Context
from builder.display import tally
from builder.errors import UsageError
from builder.sources.redif.handle import canonical
from builder.withdraw import criteria, reinstate, withdraw
from builder.withdraw.preview import Item, Preview
from builder.withdraw.selection import Selection
from functions.config.configuration import Configuration
from functions.snapshot import identifier, instant, schema, setspec

_SHOWN = 20  # items


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    which = parser.add_argument_group("which items (all that is given must be met)")
    which.add_argument(
        "--identifier", action="append", default=[], metavar="ID",
        help="an OAI identifier, or a template's handle; may be given several times",
    )  # fmt: skip
    which.add_argument("--set", metavar="SPEC", help="a set, with all sets below it")
    which.add_argument("--url-prefix", metavar="URL", help="captures whose URL begins like that")
    which.add_argument("--digest", metavar="SHA1", help="captures of that payload")
    which.add_argument("--from", dest="start", metavar="DATE", help="captured at or after, as 2007")
    which.add_argument("--until", dest="end", metavar="DATE", help="captured up to, as 2007-11-05")
    parser.add_argument("--reason", metavar="TEXT", help="why; kept in the snapshot, not served")
    parser.add_argument(
        "--restore", action="store_true", help="take the withdrawal of these items back"
    )
    parser.add_argument(
        "--purge", action="store_true",
        help="also retire every older snapshot that still holds their metadata",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only say which items these are")


def run(context: Context) -> int:
    """Make items tombstones with a reason, or take that back.

    Their titles, URLs and metadata vanish from the current data files. A tombstone keeps
    identifier, sets and reason, whatever is ingested again.
    """
    arguments = context.arguments
    selection = _selection(arguments, context.configuration)
    store, settings, outside = context.store, context.configuration, context.surroundings()
    if arguments.restore and (arguments.purge or arguments.reason):
        raise UsageError("--restore takes neither --reason nor --purge")
    if arguments.dry_run:
        kind = reinstate if arguments.restore else withdraw
        most = None if arguments.json else _SHOWN
        found = kind.selected(store, settings, outside, selection, most)
        context.result(_previewed(found), _preview_document(found))
        return 0
    if arguments.restore:
        done = reinstate.restore(store, settings, outside, selection)
    else:
        if not (arguments.reason or "").strip() or not arguments.reason.isprintable():
            raise UsageError("--reason is missing: say in a line why, it is kept in the snapshot")
        done = withdraw.withdraw(
            store, settings, outside, selection, arguments.reason.strip(), purge=arguments.purge
        )
    context.result(_account(done), _document(done))
    return 0


def _selection(arguments: argparse.Namespace, settings: Configuration) -> Selection:
    start = _read("--from", arguments.start, criteria.date)
    end = _read("--until", arguments.end, criteria.date)
    if start and end and criteria.is_reversed(start, end):
        raise UsageError(f"--from {start} is later than --until {end}")
    if arguments.set is not None and not setspec.is_valid(arguments.set):
        raise UsageError(f"--set {arguments.set}: no set specification can be like that")
    given = (arguments.identifier, arguments.set, arguments.url_prefix, arguments.digest)
    if not any(given):
        raise UsageError("say which items: --identifier, --set, --url-prefix or --digest")
    return Selection(
        tuple(_identifier(one, settings) for one in arguments.identifier),
        arguments.set,
        _read("--url-prefix", arguments.url_prefix, criteria.url_prefix),
        _read("--digest", arguments.digest, criteria.digest),
        start,
        end,
    )


def _identifier(given: str, settings: Configuration) -> str:
    """Return an identifier as it is, and that of the template for what begins as handles do."""
    handle = canonical(given)
    if not handle.startswith(("RePEc:", "ReLIS:", "mapin:")):
        return given
    namespace = str(settings["repository.namespace"])
    begin = str(settings["redif.identifier_prefix"]) or identifier.to_oai(namespace, "")
    return identifier.template(begin, handle)


def _read(option: str, value: str | None, read: Callable[[str], str]) -> str | None:
    """Return what an option's value stands for, None where it is not given."""
    if value is None:
        return None
    try:
        return read(value)
    except ValueError as error:
        raise UsageError(f"{option} {value}: {error}") from None


def _account(done: withdraw.Withdrawn) -> str:
    built = done.built
    counts = {
        "withdrawn": built.withdrawn,
        "restored": built.restored,
        "to come back with the next ingest of their archive": built.unchanged,
        "revisits of theirs changed": built.moved,
    }
    text = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    if not text:
        text = "nothing to do: these items are withdrawn already"
        text += f", with the reason: {done.reason}" if done.reason else ""
    lines = [_named(text, done.identifiers)]
    if built.manifest is not None:
        when = instant.to_text(built.manifest.effective)
        lines.append(f"snapshot {built.manifest.snapshot} of {when}")
    if done.retired:
        lines.append(f"retired snapshots: {', '.join(map(str, done.retired))}")
    return "\n".join(lines)


def _named(text: str, names: tuple[str, ...]) -> str:
    more = [f"  … and {len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
    return "\n".join([text, *(f"  {name}" for name in names[:_SHOWN]), *more])


def _previewed(found: Preview) -> str:
    """Return hosts and items in columns."""
    if not found.count:
        return "0 items: these are withdrawn already"
    hosts = [(f"{count:,}", host or "host not known") for host, count in found.hosts]
    named = found.templates + found.datasets
    if others := found.count - named - sum(count for _, count in found.hosts):
        hosts.append((f"{others:,}", "on other hosts"))
    if found.templates:
        hosts.append((f"{found.templates:,}", f"template{'s' * (found.templates != 1)} of RePEc"))
    if found.datasets:
        hosts.append((f"{found.datasets:,}", f"dataset{'s' * (found.datasets != 1)}"))
    items = [_described(item) for item in found.items[:_SHOWN]]
    lines = [tally(found.count, "item")]
    lines += [f"  {count:>9}  {host}" for count, host in hosts]
    wide = max((len(date) for date, _, _ in items), default=0)
    for date, what, name in items:
        lines += [f"  {date:<{wide}}  {what}", f"  {'':<{wide}}  {name}"]
    if found.count > len(items):
        lines.append(f"  … and {found.count - len(items):,} more; --json gives all")
    return "\n".join(lines)


def _described(item: Item) -> tuple[str, str, str]:
    """Return date, URL and identifier of a capture; in place of both the title of what has one."""
    if item.kind in schema.DOCUMENTED:
        title = " ".join((item.title or "title not known").split())
        return "", "".join(c if c.isprintable() else "?" for c in title), item.identifier
    return item.date or "no date known", item.url or "URL not known", item.identifier


def _preview_document(found: Preview) -> dict[str, Any]:
    return {
        "count": found.count,
        "templates": found.templates,
        "datasets": found.datasets,
        "hosts": [{"host": host, "items": count} for host, count in found.hosts],
        "items": [asdict(item) for item in found.items],
    }


def _document(done: withdraw.Withdrawn) -> dict[str, Any]:
    manifest = done.built.manifest
    return {
        "snapshot": manifest.snapshot if manifest else None,
        "effective": instant.to_text(manifest.effective) if manifest else None,
        "withdrawn": done.built.withdrawn,
        "restored": done.built.restored,
        "awaited": done.built.unchanged,
        "moved": done.built.moved,
        "identifiers": list(done.identifiers),
        "retired": list(done.retired),
        "reason": done.reason,
    }
