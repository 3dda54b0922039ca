"""A report as one HTML page that can be sent to a repository's operator: no script, no request."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import jinja2

from builder.check import text
from builder.check.checks import FOLDER, PASSED, SEVERITIES, find_group
from builder.check.text import Document, read_words

_FIRST = 3
"""Findings in the summary."""


def write_page(document: Document) -> str:
    """Return the page of a report; what a repository sent is escaped and without secrets."""
    report, words = text.sanitize(document), read_words()
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(FOLDER),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    failures = text.rank_failures(report)
    return environment.get_template("page.html").render(
        report=report,
        words=words,
        severities=SEVERITIES,
        first=failures[:_FIRST],
        groups=_group(report["checks"], failures),
        reasons=text.group_reasons(report),
        changes=dict(text.list_changes(report["comparison"])) if "comparison" in report else {},
        link=find_section,
        section=text.describe_section,
        remedies=lambda check: text.find_remedies(report, check),
        is_web=lambda url: urlsplit(url).scheme in ("http", "https"),
    )


def find_section(section: str) -> str:
    """Return the address of a section of OAI-PMH 2.0, or of the one around it; "" if none."""
    words, number = read_words(), section
    if not number[:1].isdigit():
        return ""
    while number and number not in words["anchors"]:
        number = number.rpartition(".")[0]
    anchor = words["anchors"].get(number)
    return f"{words['specification']}#{anchor}" if anchor else str(words["specification"])


def _group(checks: Iterable[Document], failures: list[Document]) -> list[dict[str, Any]]:
    """Return the groups of checks with a title, a line that explains it, and failures first."""
    groups: dict[str, list[Document]] = {}
    for check in checks:
        groups.setdefault(find_group(check["number"]), []).append(check)
    words = read_words()["groups"]
    profile = "What this guideline asks of each record; aggregators that follow it refuse others."
    rows = []
    for name, members in groups.items():
        title, line = words.get(name, (f"Profile {name}", profile))
        failed = [check for check in failures if check in members]
        passed = [check for check in members if check["state"] == PASSED]
        rows.append({"title": title, "text": line, "failed": failed, "passed": passed})
    return rows
