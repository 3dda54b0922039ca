"""Caching: what tells one state of a document from another, and how long it may be kept.

RFC 9110, sections 8.8.3 (ETag) and 13.1.2 (If-None-Match); RFC 9111, section 5.2.2, and RFC 8246.
"""

import hashlib
import re
from collections.abc import Mapping

REVALIDATED = "no-cache"
"""May be kept, but is asked about before each use."""

UNKEPT = "no-store"

_DATE = b"<responseDate>"
_DATE_LENGTH = len("YYYY-MM-DDThh:mm:ssZ")
_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


def digest(document: bytes) -> str:
    """Return what is the same for two documents that differ in their responseDate alone."""
    # The first is the element itself: what a stranger sent is echoed behind it.
    start = document.find(_DATE)
    end = start + len(_DATE) + _DATE_LENGTH
    found = hashlib.sha256()
    if start >= 0:
        found.update(memoryview(document)[:start])
    found.update(memoryview(document)[end if start >= 0 else 0 :])
    return found.hexdigest()[:32]


def tag(digest: str, coding: str) -> str:
    """Return the ETag of a document in a content coding ("" for none).

    It is weak, for the responseDate may differ. Each coding has its own, so that no cache takes
    one representation for the other.
    """
    return f'W/"{digest}{coding and "-"}{coding}"'


def control(seconds: int, *, pinned: bool) -> str:
    """Return the Cache-Control of a document; `seconds` is how long a pinned one is kept.

    Then it is asked about, or not used: no cache may serve it stale, not even one cut off.
    """
    if not (pinned and seconds):
        return REVALIDATED
    return f"public, max-age={seconds}, must-revalidate, immutable"


def withdrawable(seconds: int) -> str:
    """Return the Cache-Control of what stays as it is for good, but may be taken down.

    So it may be kept for that many seconds, and is asked about then, unlike what is immutable.
    """
    return f"public, max-age={seconds}, must-revalidate" if seconds else REVALIDATED


def is_held(headers: Mapping[str, str], tag: str) -> bool:
    """Tell whether the caller holds the very document already (If-None-Match, weakly compared)."""
    held = headers.get("if-none-match", "")
    return held.strip() == "*" or tag.removeprefix("W/") in _TAG.findall(held)
