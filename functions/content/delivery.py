"""Builds answers with content: whole or in part, sent directly or by a signed URL.

RFC 9110, sections 13 (conditions), 14 (ranges) and 15 (statuses).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import BinaryIO

from functions.config.configuration import Configuration
from functions.content import header_fields, representation
from functions.content.header_fields import RangePart, Unsatisfiable
from functions.content.protocols import Content, ContentError, Contents
from functions.content.representation import Body, Representation
from functions.http import http_message
from functions.http.http_message import Call, HttpResponse
from functions.store.catalog import Cache

AHEAD = 1 << 18
"""Bytes that are read before the answer begins: smaller content is verified as a whole."""

COUNTED = 1 << 28
"""Largest number of bytes read to find the size. Larger content has no ranges."""

_SIZES = 1024
"""Number of cached sizes of contents that had to be read completely to learn their size."""

Lying = Callable[[Content, int, int], BinaryIO]
"""Opens a part of unpacked content, from the number of bytes to skip and the number to return.

Raises ContentError, StoreError.
"""

Sign = Callable[[str, str, str, str], str]
"""Returns a signed URL for bucket, key, method and Content-Disposition, valid for a limited time.

Raises StoreError.
"""

_OF_BODY = ("Content-Type", "Content-Disposition", "Accept-Ranges", "Repr-Digest", "ETag")


class Delivery:
    """Answers with contents. Thread-safe.

    An answer has at most `largest` bytes of content (None: no limit, streamed). `lying` reads parts
    of unpacked content. `sign` returns the URL for a redirect to a large object of a bucket. Both
    are optional.
    """

    def __init__(
        self,
        contents: Contents,
        settings: Configuration,
        lying: Lying | None = None,
        sign: Sign | None = None,
        largest: int | None = None,
    ) -> None:
        self._contents = contents
        self._lying = lying
        self._sign = sign
        self._largest = largest
        self._seconds = settings["serve.cache_seconds"]
        self._redirected = settings["content.redirect_bytes"]
        self._sizes = Cache(_SIZES)

    def answer(
        self, call: Call, shown: Representation, ended: Callable[[int, Exception | None], None]
    ) -> HttpResponse:
        """Return the answer to a GET or a HEAD for a representation.

        `call.base` is the base URL of the paths here. If the body is a Body, `ended` is called at
        its end (see Body). Raises ContentError, StoreError.
        """
        response = self._answer(call, shown, ended)
        return replace(response, body=b"") if call.method == "HEAD" else response

    def _answer(
        self, call: Call, shown: Representation, ended: Callable[[int, Exception | None], None]
    ) -> HttpResponse:
        headers = shown.headers(call.base, self._seconds)
        if not shown.matches(call.headers):
            return _text_answer(412, headers, "These bytes do not match If-Match.")
        if shown.tag and http_message.is_held(call.headers, shown.tag):
            return HttpResponse(304, _without_body(headers, tag=True))
        elsewhere = self._elsewhere(call, shown)
        if elsewhere:
            told = {"Location": elsewhere, "Cache-Control": http_message.UNKEPT}
            told = {**_without_body(headers), **told}
            told.pop("Memento-Datetime", None)
            return _text_answer(
                302, told, "It is temporarily available at the address in Location."
            )
        part, size = None, shown.size
        counts = call.method == "GET" and shown.continues(call.headers)
        wanted = header_fields.read_range(call.headers.get("range", "")) if counts else None
        if wanted is not None and (size := self._size(shown)) is not None:
            try:
                part = wanted.part(size, self._largest)
            except Unsatisfiable:
                told = {**headers, "Content-Range": header_fields.content_range(size)}
                return _text_answer(416, told, f"There are {size} bytes.")
        if part is None and self._largest and size and size > self._largest:
            return self._too_large(headers, size)
        if call.method == "HEAD":
            if size is None:
                return self._answer_head(shown, headers)
            return HttpResponse(200, {**headers, "Content-Length": str(size)})
        return self._send(shown, headers, part, ended)

    def _answer_head(self, shown: Representation, headers: Mapping[str, str]) -> HttpResponse:
        """Return the answer to a HEAD; its headers may require reading the content."""
        response = self._send(shown, headers, None, lambda count, error: None)
        if isinstance(response.body, Body):
            response.body.close()
        return replace(response, body=b"")

    def _send(
        self,
        shown: Representation,
        headers: Mapping[str, str],
        part: RangePart | None,
        ended: Callable[[int, Exception | None], None],
    ) -> HttpResponse:
        """Return the answer with the whole or a part; up to AHEAD bytes are read at once."""
        limit = AHEAD if self._largest is None else self._largest
        with ExitStack() as source:
            further = self._open(source, shown, part)
            ready: list[bytes] = []
            count = 0
            for piece in further:
                ready.append(piece)
                count += len(piece)
                if count > limit:
                    break
            else:
                return _complete(shown, headers, part, b"".join(ready))
            if self._largest is not None:
                return self._too_large(headers, None)
            length = shown.size if part is None else part.length
            told = dict(headers)
            if length is not None:
                told["Content-Length"] = str(length)
            if part is not None:
                told["Content-Range"] = part.header
            whole = Body(ready, further, source.pop_all(), ended)
            return HttpResponse(200 if part is None else 206, told, whole)

    def _open(
        self, source: ExitStack, shown: Representation, part: RangePart | None
    ) -> Iterator[bytes]:
        """Open the whole or a part; `source` closes it.

        Only the whole is verified by its digest.
        """
        if part is None or part.length == part.size:
            opened = self._contents.open_content(shown.content, coded=shown.coded)
            return representation.body_pieces(source.enter_context(opened), None, shown.size)
        if shown.is_plain and self._lying is not None:
            file = self._lying(shown.content, part.first, part.length)
            source.callback(file.close)
        else:
            opened = self._contents.open_content(shown.content, coded=shown.coded, verified=False)
            file = source.enter_context(opened)
            representation.skip_bytes(file, part.first)
        return representation.body_pieces(file, part.length)

    def _size(self, shown: Representation) -> int | None:
        """Return the size, by reading the content if necessary; None if it is larger than COUNTED.

        Without a size the server ignores Range, as it may (section 14.2).
        """
        if shown.size is not None:
            return shown.size
        content = shown.content
        key = (content.identifier, content.url, content.date, content.digest, shown.coded)

        def count() -> int | None:
            with self._contents.open_content(content, coded=shown.coded) as source:
                return representation.count_rest(source, COUNTED)

        return self._sizes.get(key, count)

    def _elsewhere(self, call: Call, shown: Representation) -> str:
        """Return the signed URL of a large object of a bucket, else "".

        The signed URL also answers ranges, so no part is read here.
        """
        stretch, size = shown.content.stretch, shown.size
        if self._sign is None or stretch is None or not stretch.bucket or stretch.offset:
            return ""  # packed content never begins at the start of an object
        if size is None or stretch.length not in (None, size) or size <= self._redirected:
            return ""
        # The bucket's host has no sandbox, so all content there is saved instead of shown.
        kept = header_fields.disposition(header_fields.UNKNOWN_TYPE, shown.file_name)
        return self._sign(stretch.bucket, stretch.key, call.method, kept)

    def _too_large(self, headers: Mapping[str, str], size: int | None) -> HttpResponse:
        """Return the refusal of a request for more bytes than an answer can hold."""
        told = dict(headers)
        if size is not None:
            told["Content-Range"] = header_fields.content_range(size)
        return _text_answer(
            413,
            told,
            f"This is more than the {self._largest} bytes of one response: request it in parts, "
            "with Range: bytes=0- and so on; Content-Range of each response says where it ends.",
        )


def _complete(
    shown: Representation, headers: Mapping[str, str], part: RangePart | None, data: bytes
) -> HttpResponse:
    """Return the complete answer with all its bytes. Raises ContentError if the size is wrong."""
    told = {**headers, "Content-Length": str(len(data))}
    length = shown.size if part is None else part.length
    if length not in (None, len(data)):
        where = shown.content.identifier
        raise ContentError("damaged", f"{where} has {len(data)} bytes there, not {length}")
    if part is None:
        return HttpResponse(200, told, data)
    return HttpResponse(206, {**told, "Content-Range": part.header}, data)


def _without_body(headers: Mapping[str, str], *, tag: bool = False) -> dict[str, str]:
    """Return the headers without those that describe a body; with `tag`, the ETag stays."""
    return {n: v for n, v in headers.items() if n not in _OF_BODY or (tag and n == "ETag")}


def _text_answer(status: int, headers: Mapping[str, str], message: str) -> HttpResponse:
    text = f"{message}\n".encode()
    told = {
        **_without_body(headers, tag=status != 302),
        "Accept-Ranges": "bytes",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": str(len(text)),
    }
    if status in (412, 413, 416):
        told["Cache-Control"] = http_message.UNKEPT
    return HttpResponse(status, told, text)
