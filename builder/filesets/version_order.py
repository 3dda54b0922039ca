"""Order: which of a dataset's versions is the newer one, as a text that sorts as they do. Pure.

What a text begins with tells what it was made of: two that begin otherwise tell nothing of each
other. Where makers write versions as they like, no order is made of them, for one that seems lower
would keep out all that comes later.
"""

import re
from dataclasses import replace

from builder.filesets.item import FilesetPlatformItem

_INDEX, _NUMBERS, _RECORD = "i", "n", "r"
_NUMBERED = frozenset({"dataverse", "dryad", "figshare", "mendeley"})
"""Platforms that number the versions of a dataset themselves."""
_ASCENDING = frozenset({"zenodo"})
"""Platforms whose versions are records, and whose later records have the higher ids."""

_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){0,7}")
_WIDTH = 12


def order(platform: str, version: str | None, index: int | None = None) -> str | None:
    """Return the order of a version; None where nothing tells it.

    `index` is the platform's own count of versions. Else the numbers of `version` are taken, each
    of at most 12 digits: of a dotted one like Dataverse's 4.1, or of a record's id.
    """
    if index is not None:
        return _text(_INDEX, str(index))
    if platform in _NUMBERED:
        return _text(_NUMBERS, version or "")
    if platform in _ASCENDING and "." not in (version or ""):
        return _text(_RECORD, version or "")
    return None


def with_order(item: FilesetPlatformItem) -> FilesetPlatformItem:
    """Return an item with the order of its version."""
    return replace(item, order=order(item.platform_name, item.version, item.index))


def _text(kind: str, dotted: str) -> str | None:
    if not _DOTTED.fullmatch(dotted):
        return None
    numbers = [number.lstrip("0") for number in dotted.split(".")]
    if any(len(number) > _WIDTH for number in numbers):
        return None
    return f"{kind}:" + ".".join(number.zfill(_WIDTH) for number in numbers)
