"""A Sheaf endpoint as the source of a restore, read over HTTP.

Captures are listed by /cdx or, for a set, by OAI-PMH ListRecords in the format capture. Their bytes
come from /content as stored, so that their digest is verified and their content codings are decoded
here. An interrupted response is continued by a range request.

Temporary failures are retried; others are raised. The delay that a server asks for is observed
(RFC 9110, section 10.2.3). The lists are lines of /cdx, and OAI-PMH records (format capture). The
endpoint is not trusted: invalid captures are left out.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from builder.exports.restore.captures import (
    CaptureBytes,
    CaptureFilter,
    ListedCapture,
    MissingError,
    RebuildError,
    parse_scope,
    request_url,
)
from builder.http.client import FetchRequest, HttpClient
from builder.http.errors import Deferred, FetchError
from builder.http.limits import PASSING_STATUSES, Limits, RetryPolicy, announce_wait, find_wish
from builder.http.responses import Response
from builder.http.url import is_address
from functions.archive import coding
from functions.archive import declared_digest as digests
from functions.archive.coding import ContentCodingError
from functions.content import archived_payload
from functions.content.protocols import STATUSES, ContentError
from functions.content.terms import Scope
from functions.snapshot import surt

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
                why, delay = "", None
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
                    delay = find_wish(answer.headers, answer.status, self.client.wall())
            if tried == self.retry.retries:
                raise EndpointError(f"{urlsplit(url).netloc} does not answer: {why}")
            tried += 1
            seconds = self.retry.wait(tried, delay)
            announce_wait(urlsplit(url).netloc, why, seconds)
            if self.client.stop.wait(seconds):
                raise EndpointError("the restore was stopped")

    def read(self, url: str) -> tuple[Response, bytes]:
        """Return a response and its body, at most LARGEST bytes. Raises EndpointError."""
        for left in reversed(range(self.retry.retries + 1)):
            with self.ask(url) as answer:
                try:
                    body = bytearray()
                    for chunk in answer.body:
                        body += chunk
                        if len(body) > LARGEST:
                            raise FetchError("too-large", f"more than {LARGEST:,} bytes")
                    return answer, bytes(body)
                except FetchError as failure:
                    reason = f"{urlsplit(url).netloc} sends incomplete responses: {failure}"
                    if not left:
                        raise EndpointError(reason) from failure
        raise AssertionError

    def close(self) -> None:
        """Stop all requests, and close the connections."""
        self.client.stop.set()
        self.client.close()


def parse_lines(raw: bytes) -> tuple[list[ListedCapture], str]:
    """Return the captures in lines of /cdx, and the resume key or ""; other lines are left out."""
    captures, key = [], ""
    for line in raw.split(b"\n"):
        fields = None
        with suppress(ValueError, RecursionError):
            fields = json.loads(line)
        if not isinstance(fields, dict):
            continue
        if isinstance(fields.get(RESUME_KEY), str):
            key = fields[RESUME_KEY]
            continue
        values = {**fields, "mime": fields.get("media_type"), "length": fields.get("size")}
        capture = _parse_capture(values, revisit=fields.get("mime") == "warc/revisit")
        captures += [capture] if capture else []
    return captures, key


def _records(listed: ElementTree.Element) -> Iterator[ListedCapture]:
    for record in listed.iterfind(f"{_OAI}record"):
        element = record.find(f"{_OAI}metadata/{_CAPTURE}capture")
        if element is None:  # it is deleted or invalid
            continue
        fields = {child.tag.removeprefix(_CAPTURE): child.text or "" for child in element}
        digits = "".join(filter(str.isdigit, fields.get("fetch_date", "")[:19]))
        capture = _parse_capture(
            {
                "identifier": record.findtext(f"{_OAI}header/{_OAI}identifier"),
                "url": fields.get("url"),
                "timestamp": digits + "00000101000000"[len(digits) :] if digits else "",
                "status": fields.get("fetch_status"),
                "redirect": fields.get("fetch_redirect"),
                "method": fields.get("fetch_method"),
                "requestBody": fields.get("fetch_body"),
                "digest": fields.get("content_digest"),
                "mime": fields.get("content_mime_type") or fields.get("content_mime_detected"),
                "length": fields.get("content_length"),
            },
            revisit=fields.get("warc_record_type") == "revisit",
        )
        if capture is not None:
            yield capture


def _parse_capture(fields: Mapping[str, Any], *, revisit: bool) -> ListedCapture | None:
    identifier, url = fields.get("identifier"), fields.get("url")
    if not (isinstance(identifier, str) and isinstance(url, str) and identifier):
        return None
    method, body = fields.get("method"), fields.get("requestBody")
    method = method if isinstance(method, str) and method.isascii() and method else None
    body = body if isinstance(body, str) and method else None
    stamp = str(fields.get("timestamp") or "")
    return ListedCapture(
        identifier=identifier,
        url=request_url(url, method, body),
        surt=surt.of_request(url.encode("utf-8", "surrogatepass"), method, body),
        stamp=stamp if stamp.isascii() and stamp.isdigit() and len(stamp) == 14 else "",
        status=_number(fields.get("status")),
        redirect=str(fields.get("redirect") or "") or None,
        digest=str(fields.get("digest") or ""),
        media_type=str(fields.get("mime") or ""),
        length=None if revisit else _number(fields.get("length")),
        revisit=revisit,
        method=method,
    )


def _number(value: object) -> int | None:
    text = str(value) if value is not None else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


_ORIGINAL = "x-archive-orig-"
_DIGEST = "x-archive-payload-digest"
_TOO_LARGE = 413
_PARTIAL = 206
_LONGEST = 300


class EndpointSource:
    """Implements CaptureSource over HTTP. `base` is the address above /oai and /content."""

    def __init__(self, base: str, client: EndpointClient) -> None:
        self.address = base
        self._client = client

    def captures(self, choice: CaptureFilter) -> Iterator[ListedCapture]:
        """Yield the captures of the choice, as the endpoint lists them."""
        if choice.set is None and choice.urls:
            for url in choice.urls:
                yield from self._search_captures(parse_scope(url), choice.until)
            return
        first = {"verb": "ListRecords", "metadataPrefix": "capture"}
        if choice.set is not None:
            first["set"] = choice.set
        following = {"verb": "ListRecords"}
        listed = self._list("oai", first, following, "resumptionToken", self._parse_page)
        yield from choice.select(listed)

    def of_url(self, url: str, until: str) -> Iterator[ListedCapture]:
        """Yield the captures of one URL."""
        yield from self._search_captures(Scope(url, "exact", ()), until)

    @contextmanager
    def open(self, identifier: str, digest: str = "") -> Iterator[CaptureBytes]:
        """Open the bytes of a capture, with content codings decoded and the digest verified.

        If the response names no digest, `digest` from the listing is used.
        """
        url = f"{self.address}/content?{urlencode({'id': identifier, 'coded': '1'})}"
        with ExitStack() as stack:
            answer = stack.enter_context(self._client.ask(url))
            if answer.status == _TOO_LARGE:
                answer.drain()
                stack.close()
                answer = stack.enter_context(self._client.ask(url, {"Range": "bytes=0-"}))
            if answer.status not in (200, _PARTIAL):
                code, reason = answer.headers.get(TOLD, ""), _line(answer)
                if code == "disabled":
                    raise RebuildError(f"this endpoint serves no content: {reason}")
                detail = reason or f"{identifier}: HTTP status {answer.status}"
                raise MissingError(code if code in STATUSES else "refused", detail)
            try:
                yield self._bytes(url, answer, identifier, digest)
            except ContentError as error:
                raise MissingError(error.code, str(error)) from error

    def close(self) -> None:
        """Stop all requests."""
        self._client.close()

    def _bytes(self, url: str, answer: Response, identifier: str, digest: str) -> CaptureBytes:
        bears = [name for name in answer.headers.get("x-archive-coded", "").split(", ") if name]
        chunked = "chunked" in bears
        declared = _declared_digest(answer.headers.get(_DIGEST, "")) or _declared_digest(digest)
        pieces = self._pieces(url, answer)
        source = archived_payload.verify_pieces(pieces, declared, identifier, chunked=chunked)
        codings = [name for name in bears if name != "chunked"]
        try:
            plain = coding.decode_codings(source, codings, chunked=chunked) if bears else source
        except ContentCodingError as error:
            raise ContentError("undecodable", str(error)) from error
        size = None if bears else _size(answer)
        headers = {
            name.removeprefix(_ORIGINAL): value
            for name, value in answer.headers.items()
            if name.startswith(_ORIGINAL)
        }
        headers.setdefault("content-type", answer.headers.get("content-type", ""))
        return CaptureBytes(archived_payload.read_verified(plain, source), size, headers)

    def _pieces(self, url: str, answer: Response) -> Iterator[bytes]:
        """Yield the payload as stored, and continue by range if a response ends too early."""
        at, tried = 0, 0
        tag, total = answer.headers.get("etag", ""), _size(answer)
        with ExitStack() as stack:
            while True:
                why = "the response ended too early"
                try:
                    for chunk in answer.body:
                        at += len(chunk)
                        tried = 0
                        yield chunk
                    if total is None or at >= total:
                        return
                except FetchError as failure:
                    why = str(failure)
                tried += 1
                if tried > self._client.retry.retries or not tag or tag.startswith("W/"):
                    raise MissingError("cut-short", f"after {at:,} bytes: {why}")
                stack.close()
                wanted = {"Range": f"bytes={at}-", "If-Range": tag}
                answer = stack.enter_context(self._client.ask(url, wanted))
                content_range = answer.headers.get("content-range", "")
                if answer.status != _PARTIAL or not content_range.startswith(f"bytes {at}-"):
                    raise MissingError(
                        "cut-short", f"after {at:,} bytes, and then its content changed"
                    )

    def _search_captures(self, scope: Scope, until: str) -> Iterator[ListedCapture]:
        first = {
            "url": scope.url,
            "matchType": scope.match,
            "to": until,
            "fl": CDX_FIELDS,
            "output": "json",
            "showResumeKey": "true",
        }
        yield from self._list("cdx", first, first, RESUME_KEY, parse_lines)

    def _list(
        self,
        path: str,
        first: Mapping[str, str],
        following: Mapping[str, str],
        key: str,
        parse: Callable[[bytes], tuple[list[ListedCapture], str]],
    ) -> Iterator[ListedCapture]:
        """Yield the captures of all pages of a list; `key` is the argument that continues it."""
        seen = {""}
        arguments = first
        while True:
            query = urlencode(arguments, errors="surrogatepass")
            answer, body = self._client.read(f"{self.address}/{path}?{query}")
            if answer.status != 200:
                reason = f"HTTP status {answer.status}: {_shorten(body)}"
                raise RebuildError(f"{self.address} lists no captures: {reason}")
            captures, value = parse(body)
            yield from captures
            if not value:
                return
            if value in seen:
                name = "resume key" if key == RESUME_KEY else "resumption token"
                raise RebuildError(f"{self.address} repeats the same {name}")
            seen.add(value)
            arguments = {**following, key: value}

    def _parse_page(self, raw: bytes) -> tuple[list[ListedCapture], str]:
        """Return the captures of a ListRecords page, and the token of the next page or "".

        Raises RebuildError if the page is invalid, or is an OAI-PMH error.
        """
        try:
            root = ElementTree.fromstring(raw)
        except ElementTree.ParseError as error:
            raise RebuildError(
                f"the response of {self.address} is not XML ({error}): name the base URL of an "
                "OAI-PMH repository, such as https://a.example/oai"
            ) from error
        faults = root.findall(f"{_OAI}error")
        if any(fault.get("code") != "noRecordsMatch" for fault in faults):
            reasons = "; ".join(f"{e.get('code')}: {e.text or ''}".strip() for e in faults)
            raise RebuildError(f"{self.address} answered {reasons}")
        listed = root.find(f"{_OAI}ListRecords")
        if listed is None:
            if faults:
                return [], ""
            raise RebuildError(f"the response of {self.address} is not OAI-PMH")
        token = (listed.findtext(f"{_OAI}resumptionToken") or "").strip()
        return list(_records(listed)), token


def base(url: str) -> str:
    """Return the address above /oai, /cdx and /content, given the base URL or the site's address.

    Raises RebuildError if the URL is not an HTTP address.
    """
    if not is_address(url) or {"?", "#"} & set(url):
        raise RebuildError(f"{url}: expected the URL of an endpoint, such as https://host/oai")
    return url.rstrip("/").removesuffix("/oai").rstrip("/")


def _size(answer: Response) -> int | None:
    """Return the total number of bytes, if the response gives it."""
    text = answer.headers.get("content-length", "")
    if answer.status == _PARTIAL:
        text = answer.headers.get("content-range", "").rpartition("/")[2]
    return _number(text)


def _line(answer: Response) -> str:
    """Return the first line of a response's text."""
    text = bytearray()
    with suppress(FetchError):
        for chunk in answer.body:
            text += chunk
            if len(text) > _LONGEST:
                break
    return _shorten(text)


def _shorten(text: bytes | bytearray) -> str:
    return " ".join(text[:_LONGEST].decode("utf-8", "replace").split())


def _declared_digest(digest: str) -> digests.DeclaredDigest | None:
    """Return a digest with its label (SHA-1 if it has none), or None if it is invalid."""
    labelled = digest if ":" in digest else f"sha1:{digest}"
    return digests.parse_digest(labelled.encode("latin-1", "replace"))
