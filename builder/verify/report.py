"""Report of a verify, as text and as JSON."""

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from operator import attrgetter

from builder import distribution
from builder.errors import UsageError
from builder.store.findings import DAMAGE, Finding
from builder.store.identity import read_identity, revise_identity
from builder.text import tally
from builder.verify.choice import Sample, StorePart, parse_part
from builder.verify.comparison import Comparison
from builder.verify.verify import Verified
from functions.snapshot.errors import Conflict, DamagedStore
from functions.snapshot.fixity import (
    FIXITY,
    KEPT,
    CheckReport,
    next_part,
    read_reports,
)
from functions.snapshot.store import Reader, Writer

_UNCHECKED = (
    "no snapshot is published, so no record was checked: run `sheaf publish`; if there were "
    "records, restore current.json, snapshots/ and records/ from a copy"
)
"""Absence is no health: an empty store may be a lost one."""


def report_text(done: Verified, choice: Sample | StorePart | None) -> str:
    """Return the report: two lines for each finding, and a summary."""
    lines = _list_findings(done.findings)
    read = f"{done.read:,} of {tally(done.files, 'data file')} read ({tally(done.bytes, 'byte')})"
    if isinstance(choice, Sample):
        read += f", drawn with --seed {choice.seed}"
    damage, notes = _counts(done.findings)
    lines.append(f"{tally(len(done.snapshots), 'snapshot')} checked, {read}")
    for kind in filter(attrgetter("count"), done.kinds):
        objects = f"{kind.read:,} of {tally(kind.objects, 'object')} read"
        lines.append(f"{tally(kind.count, *kind.nouns)} checked, {objects}")
    if damage or notes:
        lines.append(f"{damage:,} damaged, {notes:,} noted")
    elif done.snapshots:
        lines.append("no problems found")
    if not (done.snapshots or damage):
        lines.append(_UNCHECKED)
    return "\n".join(lines)


def comparison_text(done: Comparison) -> str:
    """Return the report of a comparison: two lines for each finding, and a summary."""
    lines = _list_findings(done.findings)
    lines.append(
        f"{tally(len(done.snapshots), 'snapshot')} compared, {done.read:,} of "
        f"{tally(done.objects, 'object')} read ({tally(done.bytes, 'byte')} of each store)"
    )
    lines += [line for result in done.outputs for line in result.lines]
    if done.behind:
        lines.append(f"{tally(done.behind, 'object')} to be copied by `sheaf copy`")
    count = len(done.findings)
    lines.append(tally(count, "difference") if count else "no differences found")
    return "\n".join(lines)


def comparison_document(address: str, copy: str, done: Comparison) -> dict[str, object]:
    """Return the report of a comparison as --json prints it."""
    counts = {
        name: getattr(done, name) for name in ("snapshots", "objects", "read", "bytes", "behind")
    }
    of_outputs = {key: value for result in done.outputs for key, value in result.document.items()}
    return {"store": address, "against": copy, **counts, **of_outputs, **_tell(done.findings)}


def report_document(
    address: str, done: Verified, choice: Sample | StorePart | None
) -> dict[str, object]:
    """Return the report on the store at `address`, as --json prints it."""
    damage, notes = _counts(done.findings)
    sample = choice if isinstance(choice, Sample) else None
    part = choice if isinstance(choice, StorePart) else None
    counts = {name: getattr(done, name) for name in ("snapshots", "files", "read", "bytes")}
    for kind in done.kinds:
        counts |= zip(kind.keys, (kind.count, kind.objects, kind.read), strict=True)
    return {
        "store": address,
        **counts,
        "sample": sample and asdict(sample),
        "part": part and f"{part.number}/{part.count}",
        "damage": damage,
        "notes": notes,
        **_tell(done.findings),
    }


def _list_findings(findings: Sequence[Finding]) -> list[str]:
    pairs = ((f"{f.kind}: {f.object}: {f.problem} ({f.code})", f.remedy) for f in findings)
    return [line for what, remedy in pairs for line in (what, f"    {remedy}")]


def _tell(findings: Sequence[Finding]) -> dict[str, list[dict[str, str]]]:
    names = ("kind", "code", "object", "problem", "remedy")
    return {"findings": [{name: getattr(f, name) for name in names} for f in findings]}


def _counts(findings: tuple[Finding, ...]) -> tuple[int, int]:
    damage = sum(finding.kind == DAMAGE for finding in findings)
    return damage, len(findings) - damage


_NEXT = re.compile(r"next/([1-9][0-9]{0,2})", re.ASCII)


def choose_part(text: str, store: Reader) -> StorePart:
    """Return the part of a text such as 3/30; next/365 is the part that is due, by the reports.

    Raises UsageError, and StoreError if the reports cannot be read.
    """
    match = _NEXT.fullmatch(text)
    if not match:
        return parse_part(text)
    count = int(match[1])
    if count >= KEPT:
        raise UsageError(f"part {text}: at most {KEPT - 1} parts, as {KEPT} reports are kept")
    return StorePart(next_part(read_reports(store), count), count)


def make_report(
    done: Verified, choice: Sample | StorePart | None, began: datetime, ended: datetime
) -> CheckReport:
    """Return the report of a check as the store keeps it."""
    return CheckReport(
        began,
        ended,
        max(done.snapshots, default=0),
        f"{choice.number}/{choice.count}" if isinstance(choice, StorePart) else "",
        choice.percent if isinstance(choice, Sample) else None,
        done.files + sum(kind.objects for kind in done.kinds),
        done.read + sum(kind.read for kind in done.kinds),
        done.bytes,
        sum(finding.kind == DAMAGE for finding in done.findings),
        dict(sorted(Counter(finding.code for finding in done.findings).items())),
        distribution.version(),
    )


def record(store: Writer, report: CheckReport) -> None:
    """Add a report to those in the store. Raises StoreError; Conflict after several tries."""
    for left in reversed(range(5)):
        tag = store.tag(FIXITY)
        reports = read_reports(store) if tag else ()
        try:
            rows = [*reports, report][-KEPT:]
            store.replace(FIXITY, b"".join(row.to_json() for row in rows), tag)
        except Conflict:
            if not left:
                raise
        else:
            break
    with suppress(DamagedStore):  # a damaged identity is in the report
        if identity := read_identity(store):
            revise_identity(store, identity.store, parts=[FIXITY])
