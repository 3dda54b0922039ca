"""Representations: a content in the form that is sent, and its headers.

RFC 9110, sections 8 (metadata) and 13 (conditions).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from functions.content import headers, sandbox
from functions.content.protocols import Content
from functions.http import caching

_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')

_UNFIT = re.compile(r"[^\x21\x23-\x7e]")


@dataclass(frozen=True, slots=True)
class Representation:
    """A content with its codings undone, or as it is stored (`coded`).

    `fixed` is true if it never changes, except by withdrawal.
    """

    content: Content
    coded: bool
    fixed: bool

    @property
    def tag(self) -> str:
        """Its ETag, from the digest of the stored bytes; "" without a digest.

        It is strong, so that clients can combine parts.
        """
        if not self.content.digest:
            return ""
        form = "" if self.is_stored else "-plain"
        return f'"{_UNFIT.sub("", headers.plain(self.content.digest + form))}"'

    @property
    def is_stored(self) -> bool:
        """True if its bytes are the payload as stored, which has the digest."""
        return self.coded or not self.content.told.get("coded")

    @property
    def size(self) -> int | None:
        """Number of bytes, if known."""
        content = self.content
        if not self.coded or self.is_plain:
            return content.size
        payload = content.original or content.capture
        return None if payload is None else payload.length

    @property
    def is_plain(self) -> bool:
        """True if the stored bytes are exactly those to be sent."""
        return self.content.stretch is not None

    def headers(self, base: str, seconds: int) -> dict[str, str]:
        """Return the headers of every answer with it, whole or in part.

        `base` is the base URL of the paths here; `seconds` is the cache time of a fixed one.
        """
        content = self.content
        media_type = sandbox.media_type(content.media_type)
        found = {
            **headers.rename_headers(content.headers),
            "Content-Type": media_type,
            "Content-Disposition": sandbox.disposition(media_type, sandbox.name(content.url)),
            "Accept-Ranges": "bytes",
            "Cache-Control": caching.withdrawable(seconds if self.fixed else 0),
            **headers.memento(base, content.url, content.date),
        }
        if content.status is not None:
            found[headers.STATUS] = str(content.status)
        if content.digest:
            found["ETag"] = self.tag
            found[headers.DIGEST] = headers.plain(content.digest)
            if self.is_stored:
                found.update(headers.repr_digest(content.digest))
        for name, value in content.told.items():
            found[f"X-Archive-{name.capitalize()}"] = headers.plain(value)
        return found

    def matches(self, given: Mapping[str, str]) -> bool:
        """Return whether If-Match allows the call; the comparison is strong (section 13.1.1)."""
        held = given.get("if-match")
        if held is None or held.strip() == "*":
            return True
        return self.tag != "" and ("", self.tag) in _TAG.findall(held)

    def continues(self, given: Mapping[str, str]) -> bool:
        """Return whether Range applies; with If-Range, only for exactly the same bytes."""
        held = given.get("if-range")
        return held is None or (self.tag != "" and held.strip() == self.tag)
