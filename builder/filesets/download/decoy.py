"""Decoys: pages and errors that servers send in place of a file."""

import json
import mimetypes
from urllib.parse import unquote, urlsplit

from builder.filesets.download import api
from builder.filesets.item import FilesetManifestFile

_TYPES = mimetypes.MimeTypes()  # Python's own table, the same on every system
_ERRORS = frozenset({"error", "errors", "error_message", "errormessage", "exception"})
_PACKED = (".gz", ".tgz", ".svgz", ".z", ".taz")
_PAGES = (".html", ".htm", ".xhtml", ".shtml", ".mhtml")


def packs(file: FilesetManifestFile, url: str) -> bool:
    """Return whether the file's names show that it is itself compressed, apart from its coding."""
    named = (file.path.lower(), unquote(urlsplit(url).path).lower())
    return any(name.endswith(_PACKED) for name in named)


def is_page_file(file: FilesetManifestFile) -> bool:
    """Return whether the file itself is an HTML page, by its type or name."""
    kind = (file.mimetype or "").partition(";")[0].strip().lower()
    return api.is_html(kind) or file.path.lower().endswith(_PAGES)


def is_json_error(file: FilesetManifestFile, kind: str | None, head: bytes) -> bool:
    """Return whether JSON came, such as an error, for a file of unknown size that is not JSON.

    Its name tells that it is not. If the name has no known type, JSON with an error is one.
    """
    is_json = (kind or "").endswith(("/json", "+json"))
    if not is_json or "json" in (file.mimetype or "") or file.size is not None:
        return False
    named, packing = _TYPES.guess_type(file.path)
    if named or packing:
        return "json" not in (named or "")
    try:
        found = json.loads(head)
    except ValueError:
        return False
    return isinstance(found, dict) and not _ERRORS.isdisjoint(map(str.lower, found))
