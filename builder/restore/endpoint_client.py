"""Client of an endpoint: requests over HTTP, and parsers of its lists of captures.

Temporary failures are retried; others are raised. The delay that a server asks for is observed
(RFC 9110, section 10.2.3). The lists are lines of /cdx, and OAI-PMH records (format capture). The
endpoint is not trusted: invalid captures are left out.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import Deferred, FetchError
from builder.http.limits import PASSING_STATUSES, Limits, RetryPolicy, find_wish
from builder.http.responses import Response
from builder.restore.captures import ListedCapture, RebuildError, request_url
from functions.url import surt

LARGEST = 64 << 20
"""Maximum bytes of a list page; servers send far less at once."""
TOLD = "x-archive-error"
"""Header in which Sheaf gives the reason for missing bytes; such a response is final."""
CDX_FIELDS = (
    "url,timestamp,status,digest,redirect,mime,media_type,size,method,requestBody,identifier"
)
"""The fields of each capture that are requested from /cdx."""
RESUME_KEY = "resumeKey"

_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_CAPTURE = "{urn:x-sheaf:capture:1}"
_REVISIT = "warc/revisit"


class EndpointError(RebuildError):
    """The endpoint does not answer."""


@dataclass(frozen=True, slots=True)
class EndpointClient:
    """Client of one endpoint. Thread-safe."""

    client: HttpClient
    limits: Limits
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(first=0.5, longest=300))

    @contextmanager
    def ask(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[Response]:
        """Open the response to a GET, whatever its status.

        Raises EndpointError after all retries. Reading the body may raise FetchError.
        """
        request = FetchRequest(url=url, limits=self.limits, headers=headers or {}, exact=True)
        tried = 0
        while True:
            with ExitStack() as stack:
                why, asked = "", None
                try:
                    answer = stack.enter_context(self.client.fetch(request))
                except FetchError as failure:
                    why = str(failure)
                except Deferred as error:
                    raise EndpointError("the restore was stopped") from error
                else:
                    if answer.status not in PASSING_STATUSES or TOLD in answer.headers:
                        yield answer
                        return
                    why = f"HTTP status {answer.status}"
                    asked = find_wish(answer.headers, answer.status, self.client.wall())
            if tried == self.retry.retries:
                raise EndpointError(f"{urlsplit(url).netloc} does not answer: {why}")
            tried += 1
            if self.client.stop.wait(self.retry.wait(tried, asked)):
                raise EndpointError("the restore was stopped")

    def read(self, url: str) -> tuple[Response, bytes]:
        """Return a response and its body, at most LARGEST bytes. Raises EndpointError."""
        tried = 0
        while True:
            with self.ask(url) as answer:
                try:
                    return answer, _read_all(answer)
                except FetchError as failure:
                    if tried == self.retry.retries:
                        where = urlsplit(url).netloc
                        raise EndpointError(
                            f"{where} sends incomplete responses: {failure}"
                        ) from failure
                    tried += 1

    def close(self) -> None:
        """Stop all requests, and close the connections."""
        self.client.stop.set()
        self.client.close()


def _read_all(answer: Response) -> bytes:
    body = bytearray()
    for chunk in answer.body:
        body += chunk
        if len(body) > LARGEST:
            raise FetchError("too-large", f"more than {LARGEST:,} bytes")
    return bytes(body)


class LoopDetector:
    """Detects a loop in the keys of list pages by Brent's algorithm, in constant memory."""

    def __init__(self) -> None:
        self._kept = ""
        self._left = self._room = 1

    def again(self, key: str) -> bool:
        """Return whether a key has been seen before; a loop is found after a few rounds at most."""
        if key == self._kept:
            return True
        self._left -= 1
        if not self._left:
            self._kept = key
            self._left = self._room = 2 * self._room
        return False


def parse_line(raw: bytes) -> ListedCapture | str | None:
    """Return the capture in a line of /cdx, or its resume key; None if the line is neither."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if isinstance(found.get(RESUME_KEY), str):
        return str(found[RESUME_KEY])
    revisit = found.get("mime") == _REVISIT
    return _parse_capture(
        {**found, "mime": found.get("media_type"), "length": found.get("size")}, revisit=revisit
    )


def parse_page(raw: bytes, where: str) -> tuple[list[ListedCapture], str]:
    """Return the captures of a ListRecords page, and the token of the next page or "".

    Raises RebuildError if the page is invalid, or is an OAI-PMH error.
    """
    try:
        root = ElementTree.fromstring(raw)
    except ElementTree.ParseError as error:
        raise RebuildError(f"the response of {where} is not XML: {error}") from error
    faults = root.findall(f"{_OAI}error")
    if any(fault.get("code") != "noRecordsMatch" for fault in faults):
        told = "; ".join(f"{fault.get('code')}: {fault.text or ''}".strip() for fault in faults)
        raise RebuildError(f"{where} answered {told}")
    listed = root.find(f"{_OAI}ListRecords")
    if listed is None:
        if faults:
            return [], ""
        raise RebuildError(f"the response of {where} is not OAI-PMH")
    token = (listed.findtext(f"{_OAI}resumptionToken") or "").strip()
    return list(_records(listed)), token


def _records(listed: ElementTree.Element) -> Iterator[ListedCapture]:
    for record in listed.iterfind(f"{_OAI}record"):
        capture = record.find(f"{_OAI}metadata/{_CAPTURE}capture")
        if capture is None:  # it is deleted or invalid
            continue
        found = {child.tag.removeprefix(_CAPTURE): child.text or "" for child in capture}
        digits = "".join(filter(str.isdigit, found.get("fetch_date", "")[:19]))
        held = _parse_capture(
            {
                "identifier": record.findtext(f"{_OAI}header/{_OAI}identifier"),
                "url": found.get("url"),
                "timestamp": digits + "00000101000000"[len(digits) :] if digits else "",
                "status": found.get("fetch_status"),
                "redirect": found.get("fetch_redirect"),
                "method": found.get("fetch_method"),
                "requestBody": found.get("fetch_body"),
                "digest": found.get("content_digest"),
                "mime": found.get("content_mime_type") or found.get("content_mime_detected"),
                "length": found.get("content_length"),
            },
            revisit=found.get("warc_record_type") == "revisit",
        )
        if held is not None:
            yield held


def _parse_capture(found: Mapping[str, Any], *, revisit: bool) -> ListedCapture | None:
    identifier, url = found.get("identifier"), found.get("url")
    if not (isinstance(identifier, str) and isinstance(url, str) and identifier):
        return None
    method, body = found.get("method"), found.get("requestBody")
    method = method if isinstance(method, str) and method.isascii() and method else None
    body = body if isinstance(body, str) and method else None
    stamp = str(found.get("timestamp") or "")
    return ListedCapture(
        identifier=identifier,
        url=request_url(url, method, body),
        surt=surt.of_request(url.encode("utf-8", "surrogatepass"), method, body),
        stamp=stamp if stamp.isascii() and stamp.isdigit() and len(stamp) == 14 else "",
        status=_number(found.get("status")),
        redirect=str(found.get("redirect") or "") or None,
        digest=str(found.get("digest") or ""),
        media_type=str(found.get("mime") or ""),
        length=None if revisit else _number(found.get("length")),
        revisit=revisit,
        method=method,
    )


def _number(given: object) -> int | None:
    written = str(given) if given is not None else ""
    return int(written) if written.isascii() and written.isdigit() and len(written) < 19 else None
