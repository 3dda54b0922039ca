"""Two reports of one repository: what got better or worse, and faults that only two visits show.

An aggregator returns with the responseDate of its last visit, and asks for what changed since. So
what vanishes, goes back in time or appears before that instant stays unseen (OAI-PMH 2.0, sections
2.5.1 and 2.7.1).
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from builder.check.checks import FAILED, CheckCard, find_group, load_checks
from builder.check.report import summarize
from builder.check.text import Document
from builder.errors import UsageError
from functions.snapshot import instant
from functions.snapshot.errors import describe_failure

Seen = tuple[str, str, str]
"""The number of a check, what was seen, and of which record or format."""
_CLOCK = timedelta(minutes=10)
"""By how much clocks may differ."""
_COUNTS = ("records", "sets")
_IDENTITY = ("name", "granularity", "deleted_record")


def read_report(path: Path) -> dict[str, Any]:
    """Return an earlier report. Raises UsageError if the file is none of ours."""
    try:
        report = json.loads(path.read_bytes())
        if report["version"] == 1 and {"begun", "checks", "facts", "sample"} <= {*report}:
            return dict(report)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = describe_failure(error)
        raise UsageError(f"{path} cannot be read as a report of `sheaf check`: {reason}") from error
    raise UsageError(f"{path} is no report of `sheaf check --json` of this version")


def describe_changes(old: Document, new: Document) -> dict[str, Any]:
    """Return which checks fail newly, which pass again, and which counts differ."""
    states = {check["number"]: check["state"] for check in old["checks"]}

    def pick(before: str, after: str) -> list[dict[str, str]]:
        return [
            {name: check[name] for name in ("number", "title")}
            for check in new["checks"]
            if check["state"] == after and states.get(check["number"]) == before
        ]

    counts = [(name, old["facts"].get(name), new["facts"].get(name)) for name in _COUNTS]
    return {
        "begun": old["begun"],
        "worse": pick("passed", "failed"),
        "better": pick("failed", "passed"),
        "counts": [{"name": n, "old": a, "new": b} for n, a, b in counts if a != b],
    }


def compare(old: Document, new: Document) -> list[Seen]:
    """Return the findings of group C, in the order of the checks."""
    findings = [*_compare_repositories(old, new)]
    findings += _compare_identifiers(old, new) or [*_compare_records(old, new)]
    facts = (old["facts"], new["facts"])
    if all(fact["deleted_record"] == "persistent" for fact in facts):
        before, after = (fact["records"] for fact in facts)
        is_explained = any(number == "C01" for number, *_ in findings)
        if None not in (before, after) and after < before and not is_explained:
            findings.append(("C10", f"{before:,} records before, {after:,} now", ""))
    return sorted(findings)


def join(old: Document, new: Document) -> dict[str, Any]:
    """Return the new report with the checks of group C, and with what changed since the old one."""
    card = CheckCard()
    checks = {name: check for name, check in load_checks().items() if find_group(name) == "C"}
    card.applied.update(checks)
    for number, seen, where in compare(old, new):
        card.hold(number, False, seen, where)
    rows = [*new["checks"], *card.describe(checks, "")]
    changes = describe_changes(old, new)
    return {**new, "checks": rows, "summary": summarize(rows), "comparison": changes}


def _compare_repositories(old: Document, new: Document) -> Iterator[Seen]:
    """Yield what changed of the repository itself, and of the formats that it offers."""
    if old["url"] != new["url"]:
        yield "C06", f"asked at {old['url']} before, at {new['url']} now", ""
    for name in _IDENTITY:
        before, after = ({**report["facts"], **report}.get(name) for report in (old, new))
        if before and after and before != after:
            yield "C07", f"{name.replace('_', ' ')}: {before} before, {after} now", ""
    clocks = [report["facts"].get("clock") for report in (old, new)]
    if None not in clocks and clocks[0] - clocks[1] > _CLOCK.total_seconds():
        yield "C09", f"its clock went back by {clocks[0] - clocks[1]:,.0f} seconds", ""

    formats = {row["prefix"]: row for row in new["facts"]["formats"]}
    for row in old["facts"]["formats"] if formats else ():
        prefix = row["prefix"]
        if prefix not in formats:
            yield "C11", f"the format {prefix} is offered no more", prefix
        for name in ("schema", "namespace") if prefix in formats else ():
            if row[name] != formats[prefix][name]:
                yield "C12", f"{name}: {row[name]} before, {formats[prefix][name]} now", prefix


def _compare_identifiers(old: Document, new: Document) -> list[Seen]:
    """Return a finding for each identifier that another replaces, or one if none is there."""
    before, after = _index(old, "missing"), _index(new)
    live = [key for key, row in before.items() if not row["deleted"] and key in after]
    gone = {before[key]["digest"]: key[0] for key in live if "missing" in after[key]}
    others = {key: row["digest"] for key, row in after.items() if key not in before}
    if pairs := {gone[digest]: key[0] for key, digest in others.items() if digest in gone}:
        return [("C05", f"its metadata is that of {name} now", was) for was, name in pairs.items()]
    if others and live and all("missing" in after[key] for key in live):
        return [("C05", f"none of {len(live)} records is there, but others are", live[0][0])]
    return []


def _compare_records(old: Document, new: Document) -> Iterator[Seen]:
    """Yield what is wrong with records that both visits saw, or that appear too late."""
    before, after = _index(old, "missing"), _index(new)
    visit = instant.to_text(instant.from_text(old["begun"]) - _CLOCK)
    gone = "C02" if new["facts"]["deleted_record"] == "no" else "C01"
    missing = set[str]()
    for key, row in after.items():
        identifier, prefix = key
        where, was = f"{identifier} ({prefix})", before.get(key)
        is_early = "missing" not in row and row["datestamp"] < visit[: len(row["datestamp"])]
        if "missing" in row:
            if was and not was["deleted"] and identifier not in missing:
                missing.add(identifier)
                seen = f"it is not there ({row['missing']}), and not listed as deleted"
                yield gone, seen, identifier
        elif was is None or row["datestamp"] > was["datestamp"]:
            if is_early and (was or _is_whole(old, prefix)):
                yield "C04", f"new or changed, but with the datestamp {row['datestamp']}", where
            elif was and was["digest"] and not row["digest"] and not row["deleted"]:
                yield "C14", "it has no metadata any more, and is not listed as deleted", where
            elif was and row["deleted"] and not was["deleted"]:
                others = (k[1] for k in after if k[0] == identifier and k != key)
                if live := [p for p in others if after[identifier, p].get("deleted") is False]:
                    yield "C03", f"deleted as {prefix}, but not as {', '.join(live)}", where
        elif row["datestamp"] < was["datestamp"]:
            yield "C08", f"from {was['datestamp']} back to {row['datestamp']}", where
        elif (row["digest"], row["deleted"]) != (was["digest"], was["deleted"]) and is_early:
            yield "C13", f"changed, but still with the datestamp {row['datestamp']}", where


def _index(report: Document, left_out: str = "") -> dict[tuple[str, str], Document]:
    """Return the records of the sample by identifier and prefix, but for those with a field."""
    rows = (row for row in report["sample"] if left_out not in row)
    return {(row["identifier"], row["prefix"]): row for row in rows}


def _is_whole(report: Document, prefix: str) -> bool:
    """Return whether the sample has all records of a format, as far as the list's size tells."""
    if any(check["number"] == "L02" and check["state"] == FAILED for check in report["checks"]):
        return False
    walked = report["facts"]["walked"]
    count = sum(of == prefix for _, of in _index(report, "missing"))
    return bool(walked["prefix"] == prefix and walked["ended"] and count >= walked["records"])
