"""Static files: what browsers and crawlers look for at the root of a site."""

from collections.abc import Mapping
from pathlib import Path

from functions.http import caching
from functions.http.message import Reply

_DAY = 86_400
"""Seconds for which these files may be kept: a day is what crawlers are allowed (RFC 9309, 2.4)."""
_TYPES: Mapping[str, str] = {"favicon.ico": "image/vnd.microsoft.icon", "robots.txt": "text/plain"}
"""The files, with their media types."""


def replies(templates: Path) -> Mapping[str, Reply]:
    """Return the answer for the path of each file under `site/` of the templates."""
    return {f"/{name}": _reply(templates / "site" / name, type_) for name, type_ in _TYPES.items()}


def _reply(path: Path, type_: str) -> Reply:
    data = path.read_bytes()
    headers = {"Cache-Control": caching.withdrawable(_DAY)}
    return Reply(200, type_, data, headers, caching.digest(data))
