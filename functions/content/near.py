"""The capture of a URL that is shown for a time, and where archived redirects lead."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urldefrag

from functions.content import capture_row, fuzzy, terms
from functions.content.capture_row import CaptureRow, redirect_target
from functions.content.protocols import NEWEST, BytePlace, ContentError
from functions.content.search import CaptureSearch
from functions.snapshot import surt
from functions.snapshot.manifest import Manifest

_PARTIAL = 206
_NEAR, _PARTS = 3, 64
"""Captures on each side of a time: those that lead to themselves or cannot be read are passed, and
parts of files where there is a whole one.
"""
_HOPS = 10
_VARIANTS = 50
"""Captures of other URLs on each side of a SURT that may stand for it."""
_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class NearCaptures:
    """Captures of a URL near a time, the best first, and all of these by date.

    `is_exact`: they have its SURT. Otherwise they stand for it (functions.content.fuzzy).
    """

    best: Sequence[CaptureRow]
    by_date: Sequence[CaptureRow]
    is_exact: bool = True

    def neighbours(self, capture: CaptureRow) -> tuple[CaptureRow | None, CaptureRow | None]:
        """Return the captures before and behind one of them, as far as they are near."""
        at = self.by_date.index(capture)
        before = self.by_date[at - 1] if at else None
        return before, self.by_date[at + 1] if at + 1 < len(self.by_date) else None


def find_near(search: CaptureSearch, manifest: Manifest, key: str, moment: int) -> NearCaptures:
    """Return the captures with a SURT that are nearest to a time. Raises StoreError.

    Redirects to the same SURT, as from http to https, come last, and before them parts of files
    (206), the largest first: it may have all bytes. Of two that are equally near, the earlier comes
    first. Without any, a URL that says the same stands for it.
    """
    by_date = _find_exact(search, manifest, key, moment)
    is_exact = bool(by_date)
    if not is_exact and (other := _find_variant(search, manifest, key, moment)) is not None:
        key = other.surt
        by_date = _find_exact(search, manifest, key, moment)

    def rank(capture: CaptureRow) -> tuple[bool, int, object]:
        length = 1 + (capture.length or 0) if capture.status == _PARTIAL else 0
        away, target = _distance(capture, moment), redirect_target(capture)
        return bool(target) and _key(target) == key, -length if length else -(1 << 62), away

    return NearCaptures(sorted(by_date, key=rank), by_date, is_exact)


def _find_exact(
    search: CaptureSearch, manifest: Manifest, key: str, moment: int
) -> Sequence[CaptureRow]:
    """Return the captures with a SURT on both sides of a time, by date."""
    within, captures = terms.exact_range(key), list[CaptureRow]()
    for most in (_NEAR, _PARTS):
        before = search.captures(manifest, *within, None, most, 1, moment, reverse=True)
        captures = [*before[::-1]]
        if moment < NEWEST:
            captures += search.captures(manifest, *within, None, most, moment + 1)
        if not captures or any(capture.status != _PARTIAL for capture in captures):
            break
    return captures


def _find_variant(
    search: CaptureSearch, manifest: Manifest, key: str, moment: int
) -> CaptureRow | None:
    """Return the capture with the same normal key that is nearest to a time.

    It is one of those that are sorted around `key`: what varies is often a time itself.
    """
    normal, cut = fuzzy.normal_key(key), terms.cut_surt(key)
    within = fuzzy.variant_range(key)
    behind = search.page(manifest, *within, BytePlace(cut, _HIGHEST, _HIGHEST), _VARIANTS, 1)
    before = search.page(manifest, *within, BytePlace(cut, 0, 0), _VARIANTS, 1, reverse=True)
    captures = [*before.captures, *behind.captures]
    if normal != key:
        captures += _find_exact(search, manifest, normal, moment)
    same = (capture for capture in captures if fuzzy.normal_key(capture.surt) == normal)
    return min(same, key=lambda capture: _distance(capture, moment), default=None)


def _distance(capture: CaptureRow, moment: int) -> timedelta:
    """Return how far the time of a capture is from one; from NEWEST, the latest is nearest."""
    when = capture_row.to_instant(moment) if moment < NEWEST else datetime.max.replace(tzinfo=UTC)
    return abs(capture.instant - when)


def follow_redirects(
    search: CaptureSearch, manifest: Manifest, capture: CaptureRow
) -> tuple[CaptureRow, str]:
    """Return the capture that archived redirects lead to, and the fragment to show of it.

    Raises ContentError if they lead back, or to what is not archived.
    """
    keys, fragment = {capture.surt}, ""
    while target := redirect_target(capture):
        url, fragment = urldefrag(target)
        key = _key(url)
        if key in keys or len(keys) > _HOPS:
            raise ContentError("redirect-loop", f"{capture.url}: its redirects lead back")
        keys.add(key)
        near = find_near(search, manifest, key, int(capture.stamp))
        if not near.best:
            raise ContentError("unknown", f"{capture.url} redirects to {url}, which is not here")
        capture = near.best[0]
    return capture, fragment


def _key(url: str) -> str:
    return surt.of(url.encode("utf-8", "surrogateescape"))
