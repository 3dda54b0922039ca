"""Files on web servers that are read in ranges (RFC 9110, section 14), or as a whole.

A file is known by its size and its validator: the strong ETag, else Last-Modified. Each range is
requested on condition of the validator, and the response is compared with it. So the ranges of two
versions are never mixed. Temporary failures are retried, from the first missing byte on.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar
from urllib.parse import urlsplit

from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import OUTCOMES, FetchError, ReplacedError
from builder.http.limits import PASSING_STATUSES, Limits, RetryPolicy, announce_wait
from builder.http.responses import Response
from builder.http.secrets import strip_secrets

T = TypeVar("T")

_RANGE = re.compile(r"bytes\s+(?:(\d+)-\d+|\*)/(\d+|\*)\s*\Z", re.IGNORECASE)
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity"}
_GONE = frozenset({404, 410, 412, 416})
"""Statuses for a range of a file that was removed or replaced."""
_PROGRESS = 1 << 16
"""Bytes after which a failure counts as the first one again."""


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file as its server describes it.

    `size` is None and `validator` is "" if the server does not send them. `ranged` says whether it
    answers requests for ranges.
    """

    size: int | None
    validator: str
    ranged: bool


@dataclass(frozen=True, slots=True)
class RangeClient:
    """Reads files over HTTP. Thread-safe.

    All methods raise FetchError, and Deferred if a host asks to wait longer than `retry` allows.
    """

    client: HttpClient
    limits: Limits = field(default_factory=Limits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def look_up(self, url: str) -> WebFile:
        """Return the size and validator of a file, from a request for its first byte.

        It is no HEAD request: some servers refuse HEAD, and signed URLs are for GET only.
        """

        def attempt() -> WebFile:
            with self._get(url, {"Range": "bytes=0-0"}) as response:
                return self._describe(response)

        return self._repeat(url, attempt, hasty=True)

    def read(self, url: str, start: int, length: int, expected: WebFile) -> bytes:
        """Return `length` bytes from `start`. Raises ReplacedError if it is another file."""
        received = bytearray()
        condition: dict[str, str] = {}
        if (validator := expected.validator) and validator.isascii():
            # The field makes the server refuse another version (412).
            is_tag = validator.startswith('"')
            condition = {"If-Match" if is_tag else "If-Unmodified-Since": validator}

        def attempt() -> bytes:
            at = start + len(received)
            span = {"Range": f"bytes={at}-{start + length - 1}"}
            with self._get(url, {**span, **condition}) as response:
                self._check(response, at, expected)
                for piece in response.body:
                    received.extend(piece)
                    if len(received) > length:
                        raise FetchError("bad-answer", "more bytes than were requested")
            if len(received) < length:
                raise FetchError("cut-short", f"{len(received):,} of {length:,} bytes")
            return bytes(received)

        return self._repeat(url, attempt, lambda: len(received))

    def save(self, url: str, target: BinaryIO, expected: WebFile) -> int:
        """Write a whole file to `target` and return its size: for servers without ranges.

        Raises ReplacedError if the file is not `expected`, and OSError of `target`.
        """

        def attempt() -> int:
            with self._get(url, {}) as response:
                if response.status in _GONE or not _is_same(self._describe(response), expected):
                    raise ReplacedError
                target.seek(0)
                target.truncate()
                for piece in response.body:
                    target.write(piece)
                return target.tell()

        return self._repeat(url, attempt)

    def _get(self, url: str, headers: Mapping[str, str]) -> AbstractContextManager[Response]:
        rested = self.client.clock() + self.retry.longest + 1
        sent = {**_HEADERS, **headers}
        return self.client.fetch(
            FetchRequest(url=url, limits=self.limits, headers=sent, rested=rested, exact=True)
        )

    def _repeat(
        self,
        url: str,
        attempt: Callable[[], T],
        count: Callable[[], int] = lambda: 0,
        hasty: bool = False,
    ) -> T:
        """Try until it succeeds; `count` returns the bytes that arrived.

        With `hasty`, an unreachable host is not tried again.
        """
        tried, before = 0, 0
        while True:
            try:
                return attempt()
            except FetchError as failure:
                if count() >= before + _PROGRESS:
                    tried, before = 0, count()
                lost = hasty and self.client.hosts.has_given_up(urlsplit(url).hostname or "")
                lasting = failure.code == "tls" or self.retry.is_too_long(failure.retry_after)
                may_pass = OUTCOMES[failure.code].soon or failure.status in PASSING_STATUSES
                if lost or lasting or not may_pass or tried == self.retry.retries:
                    raise
                tried += 1
                wait = self.retry.wait(tried, failure.retry_after)
                announce_wait(strip_secrets(url), str(failure), wait)
            self.client.stop.wait(wait)  # if it is set, the next attempt raises Deferred

    def _describe(self, response: Response) -> WebFile:
        """Return the facts in the response to a whole file, or to its first byte."""
        validator = _find_validator(response.headers)
        if response.status == 200:
            length = response.headers.get("content-length", "")
            is_number = length.isascii() and length.isdigit()
            return WebFile(int(length) if is_number else None, validator, False)
        first, size = _find_range(response)
        if response.status == 416 and size == 0:  # an empty file has no first byte
            return WebFile(0, validator, True)
        if response.status != 206:
            raise self.client.refusal(response)
        if first != 0:
            raise FetchError("bad-answer", "its Content-Range is invalid", 206)
        return WebFile(size, validator, size is not None)

    def _check(self, response: Response, at: int, expected: WebFile) -> None:
        """Raise an error unless the response is the range from `at` of the expected file."""
        if response.status in _GONE:
            raise ReplacedError
        if response.status == 200:
            if not _is_same(self._describe(response), expected):
                raise ReplacedError
            raise FetchError("bad-answer", "the server no longer answers ranges", 200)
        if response.status != 206:
            raise self.client.refusal(response)
        first, size = _find_range(response)
        if (
            size not in (None, expected.size)
            or _find_validator(response.headers) != expected.validator
        ):
            raise ReplacedError
        if first != at:
            raise FetchError("bad-answer", "its Content-Range is invalid", 206)


def _find_range(response: Response) -> tuple[int | None, int | None]:
    """Return first byte and file size of Content-Range; None for each that is missing."""
    match = _RANGE.match(response.headers.get("content-range", "").strip())
    if not match:
        return None, None
    return (None if match[1] is None else int(match[1])), (
        None if match[2] == "*" else int(match[2])
    )


def _is_same(described: WebFile, expected: WebFile) -> bool:
    is_sized = described.size is not None and expected.size is not None
    return described.validator == expected.validator and (
        described.size == expected.size or not is_sized
    )


def _find_validator(headers: Mapping[str, str]) -> str:
    """Return the strong ETag, else Last-Modified, else an empty text."""
    tag = headers.get("etag", "")
    return tag if tag.startswith('"') else headers.get("last-modified", "")
