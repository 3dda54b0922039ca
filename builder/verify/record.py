"""Records the report of a check in the store, and chooses the part that is due."""

import re
from collections import Counter
from contextlib import suppress
from datetime import datetime

from builder.errors import UsageError
from builder.store.findings import DAMAGE
from builder.store.identity import read_identity, revise_identity
from builder.verify.choice import Sample, StorePart, parse_part
from builder.verify.verify import Verified
from functions import distribution
from functions.snapshot.errors import Conflict, DamagedStore
from functions.snapshot.fixity import (
    FIXITY,
    KEPT,
    CheckReport,
    next_part,
    read_reports,
    write_reports,
)
from functions.snapshot.store import Reader, Writer

_NEXT = re.compile(r"next/([1-9][0-9]{0,2})", re.ASCII)
_TRIES = 5


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
        done.files + done.objects + done.kept,
        done.read + done.objects_read + done.kept_read,
        done.bytes,
        sum(finding.kind == DAMAGE for finding in done.findings),
        dict(sorted(Counter(finding.code for finding in done.findings).items())),
        distribution.version(),
    )


def record(store: Writer, report: CheckReport) -> None:
    """Add a report to those in the store. Raises StoreError; Conflict after several tries."""
    for left in reversed(range(_TRIES)):
        tag = store.tag(FIXITY)
        reports = read_reports(store) if tag else ()
        try:
            store.replace(FIXITY, write_reports([*reports, report]), tag)
        except Conflict:
            if not left:
                raise
        else:
            break
    with suppress(DamagedStore):  # a damaged identity is in the report
        if identity := read_identity(store):
            revise_identity(store, identity.store, parts=[FIXITY])
