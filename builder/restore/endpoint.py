"""A Sheaf endpoint as the source of a restore, read over HTTP.

Captures are listed by /cdx or, for a set, by OAI-PMH ListRecords in the format capture. Their bytes
come from /content as stored, so that their digest is verified and their content codings are decoded
here. An interrupted response is continued by a range request.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from urllib.parse import urlencode

from builder.http.errors import FetchError
from builder.http.responses import Response
from builder.http.url import is_address
from builder.restore import endpoint_client
from builder.restore.captures import (
    CaptureBytes,
    CaptureFilter,
    ListedCapture,
    MissingError,
    RebuildError,
    parse_scope,
    surt_ranges,
)
from builder.restore.endpoint_client import TOLD, EndpointClient
from functions.archive import coding
from functions.archive import message as digests
from functions.archive.coding import ContentCodingError
from functions.content import archived_payload
from functions.content.protocols import STATUSES, ContentError
from functions.content.terms import Scope
from functions.snapshot.errors import SheafError

_ORIGINAL = "x-archive-orig-"
_CODED = "x-archive-coded"
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
        wanted = surt_ranges(choice.urls)
        for held in self._list_set(choice.set):
            within = wanted is None or any(first <= held.surt < last for first, last in wanted)
            if within and held.stamp <= choice.until:
                yield held

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
                raise _refusal(answer, identifier)
            try:
                yield self._bytes(url, answer, identifier, digest)
            except ContentError as error:
                raise MissingError(error.code, str(error)) from error

    def close(self) -> None:
        """Stop all requests."""
        self._client.close()

    def _bytes(self, url: str, answer: Response, identifier: str, digest: str) -> CaptureBytes:
        bears = [name for name in answer.headers.get(_CODED, "").split(", ") if name]
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
        return CaptureBytes(
            archived_payload.read_verified(plain, source), size, _archived_headers(answer.headers)
        )

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
                told = answer.headers.get("content-range", "")
                if answer.status != _PARTIAL or not told.startswith(f"bytes {at}-"):
                    raise MissingError(
                        "cut-short", f"after {at:,} bytes, and then its content changed"
                    )

    def _search_captures(self, found: Scope, until: str) -> Iterator[ListedCapture]:
        asked = {
            "url": found.url,
            "matchType": found.match,
            "to": until,
            "fl": endpoint_client.CDX_FIELDS,
            "output": "json",
            "showResumeKey": "true",
        }
        key: str | None = ""
        keys = endpoint_client.LoopDetector()
        while key is not None:
            given = {**asked, endpoint_client.RESUME_KEY: key} if key else asked
            url = f"{self.address}/cdx?{urlencode(given, errors='surrogatepass')}"
            answer, body = self._client.read(url)
            if answer.status != 200:
                raise _listing_error(answer, body, self.address)
            key = None
            for raw in body.split(b"\n"):
                line = endpoint_client.parse_line(raw)
                if isinstance(line, ListedCapture):
                    yield line
                elif line:
                    key = line
            if key is not None and keys.again(key):
                raise RebuildError(f"{self.address} repeats the same resume key")

    def _list_set(self, spec: str | None) -> Iterator[ListedCapture]:
        asked = {"verb": "ListRecords", "metadataPrefix": "capture"}
        if spec is not None:
            asked["set"] = spec
        keys = endpoint_client.LoopDetector()
        while True:
            answer, body = self._client.read(f"{self.address}/oai?{urlencode(asked)}")
            if answer.status != 200:
                raise _listing_error(answer, body, self.address)
            found, token = endpoint_client.parse_page(body, self.address)
            yield from found
            if not token:
                return
            if keys.again(token):
                raise RebuildError(f"{self.address} repeats the same resumption token")
            asked = {"verb": "ListRecords", "resumptionToken": token}


def base(url: str) -> str:
    """Return the address above /oai, /cdx and /content, given the base URL or the site's address.

    Raises RebuildError if the URL is not an HTTP address.
    """
    if not is_address(url) or {"?", "#"} & set(url):
        raise RebuildError(f"{url}: expected the URL of an endpoint, such as https://host/oai")
    return url.rstrip("/").removesuffix("/oai").rstrip("/")


def _archived_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the archived response from those of a response."""
    found = {
        name.removeprefix(_ORIGINAL): value
        for name, value in headers.items()
        if name.startswith(_ORIGINAL)
    }
    found.setdefault("content-type", headers.get("content-type", ""))
    return found


def _size(answer: Response) -> int | None:
    """Return the total number of bytes, if the response gives it."""
    told = answer.headers.get("content-length", "")
    if answer.status == _PARTIAL:
        told = answer.headers.get("content-range", "").rpartition("/")[2]
    return int(told) if told.isascii() and told.isdigit() and len(told) < 19 else None


def _refusal(answer: Response, identifier: str) -> SheafError:
    code = answer.headers.get(TOLD, "")
    said = _line(answer)
    if code == "disabled":
        return RebuildError(f"this endpoint serves no content: {said}")
    known = code if code in STATUSES else "refused"
    return MissingError(known, said or f"{identifier}: HTTP status {answer.status}")


def _line(answer: Response) -> str:
    """Return the first line of a response's text."""
    said = bytearray()
    try:
        for chunk in answer.body:
            said += chunk
            if len(said) > _LONGEST:
                break
    except FetchError:
        pass
    return " ".join(said[:_LONGEST].decode("utf-8", "replace").split())


def _listing_error(answer: Response, body: bytes, where: str) -> RebuildError:
    said = " ".join(body[:_LONGEST].decode("utf-8", "replace").split())
    return RebuildError(f"{where} lists no captures: HTTP status {answer.status}: {said}")


def _declared_digest(digest: str) -> digests.DeclaredDigest | None:
    """Return a digest with its label (SHA-1 if it has none), or None if it is invalid."""
    labelled = digest if ":" in digest else f"sha1:{digest}"
    return digests.parse_digest(labelled.encode("latin-1", "replace"))
