"""Positions: the ranges of a listing's versions, and a span's shares of the publishes."""

from collections.abc import Collection
from dataclasses import dataclass

from functions.snapshot.manifest import Key, Manifest, RowGroup, Span


@dataclass(frozen=True, slots=True)
class Range:
    """Positions that may hold members of a set: in the main files, or in the set's own copy."""

    first: int
    last: int
    copied: bool


def living(manifest: Manifest, kinds: Collection[str]) -> set[int]:
    """Return the numbers of the sequences that still list an item of `kinds`."""
    return {s.number for s in manifest.sequences if any(s.records.get(kind) for kind in kinds)}


def stretches(manifest: Manifest, living: set[int], kinds: Collection[str]) -> list[Span]:
    """Return the positions that items of `kinds` may have, ascending, adjacent spans joined.

    Only sequences whose numbers are in `living` are considered.
    """
    found: list[Span] = []
    for s in manifest.sequences:
        for span in s.spans(kinds) if s.number in living else ():
            if found and found[-1].last == span.first - 1:
                found[-1] = Span(found[-1].first, span.last)
            else:
                found.append(span)
    return found


def shares(manifest: Manifest, span: Span) -> dict[int, float]:
    """Return, for each sequence that meets the span, the fraction of its positions in the span."""
    found = {}
    for s in manifest.sequences:
        inside = min(s.last, span.last) - max(s.first, span.first) + 1
        if inside > 0:
            found[s.number] = inside / (s.last - s.first + 1)
    return found


def in_key(key: Key, spec: str | None, default: int) -> int:
    """Return the position in a row group's bound; `default` if the bound is another listing's."""
    if isinstance(key, tuple):
        return key[1] if key[0] == spec else default
    return key if isinstance(key, int) else default


def rows_in(group: RowGroup, part: Range) -> int:
    """Return the approximate number of rows of the group within the range.

    A group of copies that also holds another set's records gives 0, because the number is unknown.
    """
    if part.copied:
        bounds = {key[0] for key in (group.first, group.last) if isinstance(key, tuple)}
        return group.rows if len(bounds) == 1 else 0
    first = in_key(group.first, None, part.first)
    last = in_key(group.last, None, part.last)
    return min(last, part.last) - max(first, part.first) + 1
