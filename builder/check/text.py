"""A report as text for a terminal, and what the page needs as well: its order and its words.

All that comes from a repository is shown without secrets, and with escapes for control characters.
"""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import TextWrapper
from typing import Any

from builder.check.checks import FAILED, NOT_CHECKED, SEVERITIES, read_table
from builder.http.secrets import clean_text
from builder.text import tally, visible

Document = Mapping[str, Any]
"""A report as `builder.check.report` makes it, or a part of it."""
_WIDTH = 80
_SHOWN = 3


def read_words() -> dict[str, Any]:
    """Return the words of reports: verdicts, severities, groups, software, terms and anchors."""
    return read_table("words.toml")


def sanitize(value: Any) -> Any:
    """Return a JSON value with each text harmless to show: no secrets in URLs, no controls."""
    if isinstance(value, str):
        return visible(clean_text(value))
    if isinstance(value, Mapping):
        return {name: sanitize(content) for name, content in value.items()}
    return [sanitize(content) for content in value] if isinstance(value, list | tuple) else value


def rank_failures(report: Document) -> list[Document]:
    """Return the failed checks, the worst and most frequent first."""
    checks = [check for check in report["checks"] if check["state"] == FAILED]
    return sorted(checks, key=lambda c: (SEVERITIES.index(c["severity"]), -c["count"], c["number"]))


def group_reasons(report: Document) -> dict[str, list[Document]]:
    """Return what was not checked, by the reason."""
    reasons: dict[str, list[Document]] = {}
    for check in report["checks"]:
        if check["state"] == NOT_CHECKED:
            reasons.setdefault(check["reason"], []).append(check)
    return reasons


def find_remedies(report: Document, check: Document) -> dict[str, str]:
    """Return how a check is mended in the software of the repository, or in each if unknown."""
    remedies: dict[str, str] = check.get("software") or {}
    software = report["software"] or ""
    own = {name: text for name, text in remedies.items() if software.startswith(name)}
    return own if software else remedies


def describe_section(section: str) -> str:
    """Return a section of the specification, or the name of a guideline, as words."""
    if section == "practice":
        return "common practice"
    return f"section {section}" if section[:1].isdigit() else section


def list_changes(comparison: Document) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what is new, mended and left since the earlier report: a label and lines."""
    yield "worse", [f"{c['number']} {c['title']}" for c in comparison["worse"]]
    yield "better", [f"{c['number']} {c['title']}" for c in comparison["better"]]
    yield "counts", [f"{c['name']}: {c['old']} → {c['new']}" for c in comparison["counts"]]


def write_text(document: Document) -> str:
    """Return a report for a terminal: verdict, findings by severity, what was not checked."""
    report, words = sanitize(document), read_words()
    summary = report["summary"]
    headline, meaning = words["verdicts"][summary["verdict"]]
    counts = "; ".join(f"{summary[name]:,} {words['severities'][name]}" for name in SEVERITIES)
    lines = [
        " · ".join(filter(None, (report["name"], report["url"], report["software"]))),
        f"{headline} {meaning}",
        f"{counts}; {summary['passed']:,} passed, {summary['not_checked']:,} not checked; "
        f"{tally(len(report['requests']), 'request')} in {report['seconds']:.0f} s.",
    ]
    texts = [_wrap(line, "") for line in lines]
    if comparison := report.get("comparison"):
        texts.append(f"\nSINCE {comparison['begun']}")
        for label, changes in list_changes(comparison):
            texts += [_wrap(f"{label:7}{change}", "  ") for change in changes]
    severity = None
    for check in rank_failures(report):
        if check["severity"] != severity:
            severity = check["severity"]
            texts.append(f"\n{words['severities'][severity].upper()}")
        texts += _write_failure(report, check)
    if reasons := group_reasons(report):
        texts.append("\nNOT CHECKED")
        for reason, checks in reasons.items():
            texts.append(_wrap(f"{reason}: {', '.join(c['number'] for c in checks)}", "  "))
    return "\n".join(texts)


def _write_failure(report: Document, check: Document) -> Iterator[str]:
    """Yield the lines of a failed check: what must hold, what was asked and seen, the remedy."""
    section = describe_section(check["section"])
    yield _wrap(f"{check['number']}  {check['title']} ({section})", "  ")
    distinct = {(row["seen"], row["where"]): row for row in reversed(check["findings"])}
    shown = [*reversed(distinct.values())][:_SHOWN]
    for finding in shown:
        where = f" [{finding['where']}]" if finding["where"] else ""
        yield _wrap(f"seen   {finding['seen']}{where}", "    ")
        if finding["request"] is not None:
            yield f"    asked  {report['requests'][finding['request']]['url']}"
    if (more := check["count"] - len(shown)) > 0:
        yield f"    and {more:,} more"
    yield _wrap(f"mend   {check['mend']}", "    ")
    for name, remedy in find_remedies(report, check).items():
        yield _wrap(f"       {name}: {remedy}", "    ")


def _wrap(text: str, indent: str) -> str:
    """Return a text in lines of the terminal's width; URLs stay whole, to be copied."""
    hanging = indent + " " * (7 if indent else 0)
    return TextWrapper(
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ).fill(text)
