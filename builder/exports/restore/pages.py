"""Conversion of pages: references in HTML and style sheets are rewritten to the restored files.

References to restored files become relative paths. Other references become the original URL, so
that the page still shows its targets. The encoding of a page, and all other bytes, are unchanged.
"""

import hashlib
import posixpath
from collections.abc import Iterator, Mapping
from typing import BinaryIO
from urllib.parse import quote

from builder.exports.restore.plan import Plan, Planned
from functions.content.replay.page_bytes import KINDS, LARGEST, PageBytes


def convert(file: BinaryIO, planned: Planned, headers: Mapping[str, str], plan: Plan) -> str | None:
    """Rewrite a page in place; return its new SHA-256, or None if it is unchanged."""
    if file.tell() > LARGEST:
        return None
    file.seek(0)
    new = rewrite_page(file.read(), planned, headers.get("content-type", ""), plan)
    if new is None:
        return None
    file.seek(0)
    file.truncate()
    file.write(new)
    return hashlib.sha256(new).hexdigest()


def rewrite_page(data: bytes, planned: Planned, content_type: str, plan: Plan) -> bytes | None:
    """Return a page with its references rewritten; None if its encoding forbids it."""

    def lead(forms: Iterator[str], mark: str, role: str, written: str) -> str | None:
        """Return the relative path of a restored file, else the full URL."""
        first = ""
        for form in forms:
            first = first or form
            if (path := plan.path(form)) is not None:
                if path == planned.path and mark:
                    return mark
                folder = posixpath.dirname(planned.path)
                return quote(posixpath.relpath(path, folder), safe="!$&+,;=@~/") + mark
        return None if first + mark == written else first + mark

    return PageBytes.of(data, planned.url, KINDS[planned.media_type], content_type).rewrite(lead)
