"""HTTP caching: entity tags and cache lifetimes of documents.

RFC 9110, sections 8.8.3 (ETag) and 13.1.2 (If-None-Match); RFC 9111, section 5.2.2, and RFC 8246.
"""

import hashlib
import re
from collections.abc import Mapping

REVALIDATED = "no-cache"
"""May be stored, but must be revalidated before each use."""

UNKEPT = "no-store"

_DATE = b"<responseDate>"
_DATE_LENGTH = len("YYYY-MM-DDThh:mm:ssZ")
_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


def digest(document: bytes) -> str:
    """Return a digest that ignores the responseDate of a document."""
    # The first match is the element itself: client input is echoed behind it.
    start = document.find(_DATE)
    end = start + len(_DATE) + _DATE_LENGTH
    found = hashlib.sha256()
    if start >= 0:
        found.update(memoryview(document)[:start])
    found.update(memoryview(document)[end if start >= 0 else 0 :])
    return found.hexdigest()[:32]


def tag(digest: str, coding: str) -> str:
    """Return the ETag of a document in a content coding ("" for no coding).

    It is weak, because the responseDate may differ. Each coding has its own tag, so that no cache
    confuses the representations.
    """
    return f'W/"{digest}{coding and "-"}{coding}"'


def control(seconds: int, *, pinned: bool) -> str:
    """Return the Cache-Control of a document; a pinned one may be stored for `seconds`.

    Then caches must revalidate: no cache may serve it stale, not even while disconnected.
    """
    if not (pinned and seconds):
        return REVALIDATED
    return f"public, max-age={seconds}, must-revalidate, immutable"


def withdrawable(seconds: int) -> str:
    """Return the Cache-Control of content that never changes but may be taken down.

    Unlike immutable content it must be revalidated after `seconds`.
    """
    return f"public, max-age={seconds}, must-revalidate" if seconds else REVALIDATED


def is_held(headers: Mapping[str, str], tag: str) -> bool:
    """Return whether the client holds this document already (If-None-Match, weak comparison)."""
    held = headers.get("if-none-match", "")
    return held.strip() == "*" or tag.removeprefix("W/") in _TAG.findall(held)
