"""Report cards that `sheaf update` keeps of its repositories, each compared with the one before.

<home>/cards/<name>.check.json is a report, and <home>/cards/<name>.html its page.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from builder.check.checks import SEVERITIES
from builder.check.comparison import read_report
from builder.check.page import write_page
from builder.check.text import Document, rank_failures, read_words, sanitize
from builder.errors import UsageError, explaining
from builder.store import documents
from builder.store.durable import replace_durably

FOLDER = "cards"
_SHOWN = 3


def renew_card(home: Path, name: str, visit: Callable[[Document | None], dict[str, Any]]) -> str:
    """Visit a repository, replace its report and page, and return what they say in a line.

    `visit` gets the report before, to compare with it. Raises SheafError, also if the files cannot
    be written.
    """
    folder, before = home / FOLDER, None
    path = folder / f"{name}.check.json"
    with suppress(UsageError):  # there is none yet, or one of another version
        before = read_report(path)
    report = visit(before)
    with explaining(folder, "written"):
        folder.mkdir(exist_ok=True)
        replace_durably(path, documents.write_indented(report))
        replace_durably(folder / f"{name}.html", write_page(report).encode())
    return describe_card(report)


def describe_card(report: Document) -> str:
    """Return the verdict of a report, its counts and the worst checks, in a line."""
    failures, words = rank_failures(report), read_words()
    parts = []
    for severity in SEVERITIES:
        if numbers := [check["number"] for check in failures if check["severity"] == severity]:
            more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
            parts.append(f"{words['severities'][severity]}: {', '.join(numbers[:_SHOWN])}{more}")
    headline = words["verdicts"][report["summary"]["verdict"]][0]
    return str(sanitize(" ".join([headline, "; ".join(parts)]).strip()))
