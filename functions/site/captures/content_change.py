"""What became of a URL's content from one capture to the next."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from functions.content.capture_row import CaptureRow

MARKED = ("changed", "redirect", "error", "revisit")
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
    found = []
    for one in captures:
        change = _classify(one)
        if change not in ("redirect", "error"):
            if one.surt in digests:
                is_same = one.digest is not None and one.digest == digests[one.surt]
                change = change or ("same" if is_same else "changed")
            elif is_complete(one.surt):
                change = change or ("changed" if one.surt in seen else "first")
            digests[one.surt] = one.digest
        seen.add(one.surt)
        found.append(change)
    return found


def mark_months(captures: Sequence[CaptureRow], changes: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the changes of each month (`2007-11`) that a calendar marks, in their order."""
    found: dict[str, set[str]] = defaultdict(set)
    for one, change in zip(captures, changes, strict=True):
        found[f"{one.stamp[:4]}-{one.stamp[4:6]}"].add(change)
    return {month: [one for one in MARKED if one in some] for month, some in found.items()}


def _classify(one: CaptureRow) -> str:
    """Return what a capture alone tells, or ""."""
    if one.is_revisit:
        return "revisit"
    if one.status is not None and 300 <= one.status < 400:
        return "redirect"
    return "error" if one.status is not None and one.status >= 400 else ""
