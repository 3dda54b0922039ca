"""Order of a dataset's versions, as texts that sort like the versions. Pure.

The first letter of a text says what it was made from. Texts with different letters cannot be
compared. There is no order for platforms where authors choose version names: a version that seems
lower would block all later ones.
"""

import re
from dataclasses import replace

from builder.filesets.item import FilesetPlatformItem

_INDEX, _NUMBERS, _RECORD = "i", "n", "r"
_NUMBERED = frozenset({"dataverse", "dryad", "figshare", "mendeley"})
"""Platforms that number the versions of a dataset."""
_ASCENDING = frozenset({"zenodo"})
"""Platforms whose versions are records; later records have higher ids."""

_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){0,7}")
_WIDTH = 12


def order(platform: str, version: str | None, index: int | None = None) -> str | None:
    """Return the order of a version, or None if it is unknown.

    `index` is the platform's own count of versions. Otherwise the numbers in `version` are used,
    each with at most 12 digits: of a dotted version such as Dataverse's 4.1, or of a record's id.
    """
    if index is not None:
        return _text(_INDEX, str(index))
    if platform in _NUMBERED:
        return _text(_NUMBERS, version or "")
    if platform in _ASCENDING and "." not in (version or ""):
        return _text(_RECORD, version or "")
    return None


def with_order(item: FilesetPlatformItem) -> FilesetPlatformItem:
    """Return the item with the order of its version."""
    return replace(item, order=order(item.platform_name, item.version, item.index))


def _text(kind: str, dotted: str) -> str | None:
    if not _DOTTED.fullmatch(dotted):
        return None
    numbers = [number.lstrip("0") for number in dotted.split(".")]
    if any(len(number) > _WIDTH for number in numbers):
        return None
    return f"{kind}:" + ".".join(number.zfill(_WIDTH) for number in numbers)
