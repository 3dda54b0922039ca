"""Static files that browsers and crawlers request at the root of a site."""

from collections.abc import Mapping
from pathlib import Path

from functions.http import caching
from functions.http.message import Reply

_DAY = 86_400
"""Cache lifetime of these files in seconds: a day, the limit for crawlers (RFC 9309, 2.4)."""
_TYPES: Mapping[str, str] = {"favicon.ico": "image/vnd.microsoft.icon", "robots.txt": "text/plain"}
"""The files, with their media types."""


def replies(templates: Path) -> Mapping[str, Reply]:
    """Return the reply for the path of each file under `site/` of the templates."""
    return {f"/{name}": _reply(templates / "site" / name, type_) for name, type_ in _TYPES.items()}


def _reply(path: Path, type_: str) -> Reply:
    data = path.read_bytes()
    headers = {"Cache-Control": caching.withdrawable(_DAY)}
    return Reply(200, type_, data, headers, caching.digest(data))
