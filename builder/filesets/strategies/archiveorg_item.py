"""Holdings: the item of archive.org that has a dataset's files, its name and what it tells."""

import hashlib
import re
from typing import Any

from builder.filesets.item import FilesetPlatformItem
from builder.filesets.strategies.keys import place

_OTHER = re.compile(r"[^A-Za-z0-9.-]+")
_LONGEST = 80
_DIGITS = 12


def name(item: FilesetPlatformItem) -> str:
    """Return the name of the item: the one that it has, or one for that very manifest.

    It is of the letters that archive.org takes, begins with the platform's host, and another
    manifest of the dataset has another.
    """
    if item.archiveorg_item_name:
        return item.archiveorg_item_name
    number = hashlib.sha256(place(item).encode()).hexdigest()[:_DIGITS]
    parts = (item.platform_domain or item.platform_name, item.platform_id or "", item.version or "")
    head = "-".join(_OTHER.sub("-", part).strip("-.") for part in parts)
    return f"{head[: _LONGEST - _DIGITS - 1].strip('-.')}-{number}"


def metadata(item: FilesetPlatformItem) -> dict[str, Any]:
    """Return the metadata with which the item is made; what the platform tells of it counts."""
    told = item.description
    found = {
        "mediatype": "data",
        "title": told.title or item.platform_id,
        "creator": [person.name for person in told.creators],
        "publisher": told.publisher,
        "date": told.published,
        "description": told.abstract,
        "subject": list(told.subjects),
        "language": told.language,
        "licenseurl": next((one.url for one in told.licences if one.url), None),
        "external-identifier": f"urn:doi:{told.doi}" if told.doi else None,
        "originalurl": item.web_base_url,
        "version": told.version or item.version,
    }
    given = found | dict(item.archiveorg_item_meta or {})
    return {key: value for key, value in given.items() if value not in (None, "", [])}
