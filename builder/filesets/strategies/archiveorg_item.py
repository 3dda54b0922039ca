"""The archive.org item of a dataset: its name and its metadata."""

import hashlib
import re
from typing import Any

from builder.filesets.item import FilesetPlatformItem
from builder.filesets.strategies.keys import place

_OTHER = re.compile(r"[^A-Za-z0-9.-]+")
_LONGEST = 80
_DIGITS = 12


def name(item: FilesetPlatformItem) -> str:
    """Return the name of the item: the existing one, or a name derived from the manifest.

    It has only letters that archive.org accepts, and starts with the platform's host. Another
    manifest of the same dataset has another name.
    """
    if item.archiveorg_item_name:
        return item.archiveorg_item_name
    number = hashlib.sha256(place(item).encode()).hexdigest()[:_DIGITS]
    parts = (item.platform_domain or item.platform_name, item.platform_id or "", item.version or "")
    head = "-".join(_OTHER.sub("-", part).strip("-.") for part in parts)
    return f"{head[: _LONGEST - _DIGITS - 1].strip('-.')}-{number}"


def metadata(item: FilesetPlatformItem) -> dict[str, Any]:
    """Return the metadata for creating the item; archiveorg_item_meta overrides the rest."""
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
