"""What became of a URL's content from one capture to the next."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from functions.content.capture_row import CaptureRow

MARKED = ("first", "changed", "redirect", "error", "revisit")
"""The changes that a calendar marks, in the order of their marks."""


def find_changes(
    captures: Iterable[CaptureRow], is_complete: Callable[[str], bool] = lambda surt: True
) -> list[str]:
    """Return a word for each capture: first, same, changed, redirect, error or revisit.

    Captures of a URL must be in the order of time. Redirects and errors between two captures do not
    count: their content is compared over them. Without what came before, the word is "": where
    `is_complete` is false for a SURT, earlier captures of it are missing.
    """
    digests: dict[str, str | None] = {}
    seen: set[str] = set()
    changes = []
    for capture in captures:
        change, surt, status = "", capture.surt, capture.status or 0
        if capture.is_revisit:
            change = "revisit"
        elif status >= 300:
            change = "redirect" if status < 400 else "error"
        if change not in ("redirect", "error"):
            if surt in digests:
                is_same = capture.digest is not None and capture.digest == digests[surt]
                change = change or ("same" if is_same else "changed")
            elif is_complete(surt):
                change = change or ("changed" if surt in seen else "first")
            digests[surt] = capture.digest
        seen.add(surt)
        changes.append(change)
    return changes


def mark_months(captures: Sequence[CaptureRow], changes: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the changes of each month (`2007-11`) that a calendar marks, in their order."""
    months: dict[str, set[str]] = defaultdict(set)
    for capture, change in zip(captures, changes, strict=True):
        months[f"{capture.stamp[:4]}-{capture.stamp[4:6]}"].add(change)
    return {month: [mark for mark in MARKED if mark in seen] for month, seen in months.items()}


def list_days(pairs: Iterable[tuple[CaptureRow, str]], digits: str) -> Mapping[str, list[str]]:
    """Return the changes of captures by day (`2007-11-05`), of the dates that begin with digits."""
    days: dict[str, list[str]] = defaultdict(list)
    for capture, change in pairs:
        date = (capture.date or "")[:10]
        if len(date) == len("2007-11-05") and capture.stamp.startswith(digits):
            days[date].append(change)
    return days
