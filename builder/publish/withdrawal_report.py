"""Reports and previews of a withdrawal or its reversal, as text and as JSON."""

from dataclasses import asdict
from typing import Any

from builder.kinds import KINDS
from builder.publish.selection import Item, Preview
from builder.publish.withdraw import Withdrawn
from builder.text import tally
from functions.kinds import DOCUMENTED
from functions.snapshot import instant

SHOWN = 20  # items


def text(done: Withdrawn) -> str:
    """Return the report as text."""
    built = done.built
    counts = {
        "withdrawn": built.withdrawn,
        "reinstated": built.reinstated,
        "to return with `sheaf ingest --again` of their archive": built.unchanged,
        "of their revisits changed": built.moved,
    }
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    if not summary:
        summary = "nothing to do: these items are already withdrawn"
        summary += f", with the reason: {done.reason}" if done.reason else ""
    lines = [summary, *(f"  {name}" for name in done.identifiers[:SHOWN])]
    if (more := len(done.identifiers) - SHOWN) > 0:
        lines.append(f"  … and {more:,} more")
    if built.manifest is not None:
        when = instant.to_text(built.manifest.effective)
        lines.append(f"snapshot {built.manifest.snapshot} of {when}")
    if done.retired:
        lines.append(f"retired snapshots: {', '.join(map(str, done.retired))}")
    return "\n".join(lines)


def preview_text(preview: Preview) -> str:
    """Return the preview as text: hosts and items in columns."""
    if not preview.count:
        return "0 items: these are already withdrawn"
    hosts = [(f"{count:,}", host or "host unknown") for host, count in preview.hosts]
    on_hosts = preview.count - sum(preview.kinds.values())
    if others := on_hosts - sum(count for _, count in preview.hosts):
        hosts.append((f"{others:,}", "on other hosts"))
    for key, *nouns in filter(None, (kind.counted for kind in KINDS)):
        if count := preview.kinds.get(key):
            hosts.append((f"{count:,}", nouns[count != 1]))
    items = [_describe(item) for item in preview.items[:SHOWN]]
    lines = [tally(preview.count, "item")]
    lines += [f"  {count:>9}  {host}" for count, host in hosts]
    wide = max((len(date) for date, _, _ in items), default=0)
    for date, what, name in items:
        lines += [f"  {date:<{wide}}  {what}", f"  {'':<{wide}}  {name}"]
    if preview.count > len(items):
        lines.append(f"  … and {preview.count - len(items):,} more; --json gives all")
    return "\n".join(lines)


def _describe(item: Item) -> tuple[str, str, str]:
    """Return date, URL and identifier of a capture; "", title and identifier of other items."""
    if item.kind in DOCUMENTED:
        title = " ".join((item.title or "title unknown").split())
        return "", "".join(c if c.isprintable() else "?" for c in title), item.identifier
    return item.date or "date unknown", item.url or "URL unknown", item.identifier


def preview_document(preview: Preview) -> dict[str, Any]:
    """Return the preview as --json prints it."""
    return {
        "count": preview.count,
        **preview.kinds,
        "hosts": [{"host": host, "items": count} for host, count in preview.hosts],
        "items": [asdict(item) for item in preview.items],
    }


def document(done: Withdrawn) -> dict[str, Any]:
    """Return the report as --json prints it."""
    manifest = done.built.manifest
    return {
        "snapshot": manifest and manifest.snapshot,
        "effective": manifest and instant.to_text(manifest.effective),
        "withdrawn": done.built.withdrawn,
        "reinstated": done.built.reinstated,
        "awaited": done.built.unchanged,
        "moved": done.built.moved,
        "identifiers": list(done.identifiers),
        "retired": list(done.retired),
        "reason": done.reason,
    }
