"""Answers requests with archived bytes, whole or in part, sent directly or by a signed URL.

RFC 7089; RFC 9110, sections 13 (conditions), 14 (ranges) and 15 (statuses).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from functions.config.configuration import Configuration
from functions.content import header_fields, memento, neighbours, outback, representation
from functions.content.capture_row import FIELDS
from functions.content.contents import ArchivedContents
from functions.content.header_fields import RangePart, Unsatisfiable
from functions.content.protocols import DIALECTS, REPLAY, SCRIPTS, Content, ContentError
from functions.content.representation import ArgumentError, Body, ContentRequest, Representation
from functions.content.search import CaptureSearch
from functions.http import http_message
from functions.http.access_log import AccessLog
from functions.http.http_message import Call, HttpResponse, Reply
from functions.http.service import Service
from functions.reading.repository import Repository, find_item
from functions.snapshot import obi
from functions.snapshot.manifest import Manifest
from functions.snapshot.store import Reader
from functions.store import s3_request
from functions.store.catalog import Cache

if TYPE_CHECKING:
    from functions.content.replay.replay import Replay
    from functions.content.replay.scripts import ScriptReplay

_LOG = logging.getLogger("sheaf")

PART = 4_000_000
"""Bytes of content in one answer of Lambda: its limit is 6 MB, and base64 adds a third."""

_LISTS: Mapping[str, Callable[[Call, CaptureSearch, Manifest, Configuration], Reply]] = {
    "/cdx": outback.reply,
    "/timemap": memento.timemap,
    "/timegate": memento.timegate,
}
_TIMEMAPS = f"{REPLAY}/timemap/"
"""Where replay systems have TimeMaps, and crawlers ask for known captures."""
_STREAMS = 256
"""Maximum number of concurrent streams; each holds a file or a request to a bucket open."""
PATHS = (representation.PATH, REPLAY, SCRIPTS, *sorted({*_LISTS, *DIALECTS}))
"""The paths that are answered here, with all paths below them."""

_FIELDS = (*FIELDS, obi.DOCUMENT.name)
"""Columns read from a record: all that a capture needs, and the whole document of other kinds."""

_ALLOWED = ("GET", "HEAD", "OPTIONS")
_PLAIN = "text/plain"
_LONGEST = 300

AHEAD = 1 << 18
"""Bytes that are read before the answer begins: smaller content is verified as a whole."""

COUNTED = 1 << 28
"""Largest number of bytes read to find the size. Larger content has no ranges."""

_SIZES = 1024
"""Number of cached sizes of contents that had to be read completely to learn their size."""

Sign = Callable[[str, str, str, str], str]
"""Returns a signed URL for bucket, key, method and Content-Disposition, valid for a limited time.

Raises StoreError.
"""

_OF_BODY = ("Content-Type", "Content-Disposition", "Accept-Ranges", "Repr-Digest", "ETag")


class Delivery:
    """Answers with contents. Thread-safe.

    An answer has at most `largest` bytes of content (None: no limit, streamed). `sign` returns the
    URL for a redirect to a large object of a bucket; it is optional.
    """

    def __init__(
        self,
        contents: ArchivedContents,
        settings: Configuration,
        sign: Sign | None = None,
        largest: int | None = None,
    ) -> None:
        self._contents = contents
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
        if elsewhere := self._elsewhere(call, shown):
            headers.pop("Memento-Datetime", None)
            headers |= {"Location": elsewhere, "Cache-Control": http_message.UNKEPT}
            return _text_answer(
                302, headers, "It is temporarily available at the address in Location."
            )
        part, size = None, shown.size
        counts = call.method == "GET" and shown.continues(call.headers)
        wanted = header_fields.read_range(call.headers.get("range", "")) if counts else None
        if wanted is not None and (size := self._size(shown)) is not None:
            try:
                part = wanted.part(size, self._largest)
            except Unsatisfiable:
                headers["Content-Range"] = header_fields.content_range(size)
                return _text_answer(416, headers, f"There are {size} bytes.")
        if part is None and self._largest and size and size > self._largest:
            return self._too_large(headers, size)
        if call.method != "HEAD":
            return self._send(shown, headers, part, ended)
        if size is not None:
            return _head(headers, None, size)
        # The headers may require reading the content.
        response = self._send(shown, headers, None, lambda count, error: None)
        if isinstance(response.body, Body):
            response.body.close()
        return response

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
            length = shown.size if part is None else part.length
            ready: list[bytes] = []
            count = 0
            for piece in further:
                ready.append(piece)
                count += len(piece)
                if count > limit:
                    break
            else:
                if length not in (None, count):
                    where = shown.content.identifier
                    raise ContentError("damaged", f"{where} has {count} bytes there, not {length}")
                return replace(_head(headers, part, count), body=b"".join(ready))
            if self._largest is not None:
                return self._too_large(headers, None)
            whole = Body(ready, further, source.pop_all(), ended)
            return replace(_head(headers, part, length), body=whole)

    def _open(
        self, source: ExitStack, shown: Representation, part: RangePart | None
    ) -> Iterator[bytes]:
        """Open the whole or a part; `source` closes it.

        Only the whole is verified by its digest.
        """
        if part is None or part.length == part.size:
            opened = self._contents.open_content(shown.content, coded=shown.coded)
            return representation.body_pieces(source.enter_context(opened), None, shown.size)
        if shown.is_plain:
            file = self._contents.open_part(shown.content, part.first, part.length)
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
        saving = header_fields.disposition(header_fields.UNKNOWN_TYPE, shown.file_name)
        return self._sign(stretch.bucket, stretch.key, call.method, saving)

    def _too_large(self, headers: Mapping[str, str], size: int | None) -> HttpResponse:
        """Return the refusal of a request for more bytes than an answer can hold."""
        sized = {} if size is None else {"Content-Range": header_fields.content_range(size)}
        return _text_answer(
            413,
            {**headers, **sized},
            f"This is more than the {self._largest} bytes of one response: request it in parts, "
            "with Range: bytes=0- and so on; Content-Range of each response says where it ends.",
        )


def _head(headers: Mapping[str, str], part: RangePart | None, length: int | None) -> HttpResponse:
    """Return the answer with the whole or a part, as yet without its body."""
    sized = {} if length is None else {"Content-Length": str(length)}
    if part is None:
        return HttpResponse(200, {**headers, **sized})
    return HttpResponse(206, {**headers, **sized, "Content-Range": part.header})


def _without_body(headers: Mapping[str, str], *, tag: bool = False) -> dict[str, str]:
    """Return the headers without those that describe a body; with `tag`, the ETag stays."""
    return {n: v for n, v in headers.items() if n not in _OF_BODY or (tag and n == "ETag")}


def _text_answer(status: int, headers: Mapping[str, str], message: str) -> HttpResponse:
    text = f"{message}\n".encode()
    sent = {
        **_without_body(headers, tag=status != 302),
        "Accept-Ranges": "bytes",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": str(len(text)),
    }
    if status in (412, 413, 416):
        sent["Cache-Control"] = http_message.UNKEPT
    return HttpResponse(status, sent, text)


class ContentApplication(Service):
    """Answers requests with the content of one repository. Thread-safe.

    If `largest` is given, PART limits the content of an answer. Otherwise bodies may be of type
    Body, which the caller closes.
    """

    unreachable = "The archive cannot be reached at the moment; try again later."
    too_large = "The response is too large; request less."

    def __init__(
        self,
        repository: Repository,
        contents: ArchivedContents,
        search: CaptureSearch,
        settings: Configuration,
        clock: Callable[[], datetime],
        log: Callable[[str], None] | None = None,
        compress: Callable[[bytes], bytes] = http_message.compress,
        largest: int | None = None,
        sign: Sign | None = None,
        store: Reader | None = None,
    ) -> None:
        super().__init__(repository, settings, clock, log, time.perf_counter, compress, largest)
        self._contents = contents
        self._search = search
        most = None if largest is None else PART
        self._delivery = Delivery(contents, settings, sign, most)
        # The worker that replays scripts may not ask a bucket's host.
        self._unsigned = Delivery(contents, settings, None, most)
        self._store = store
        self._streams = threading.BoundedSemaphore(_STREAMS)
        self._replaying: Replay | None = None
        self._scripts: ScriptReplay | None = None

    def answer(self, call: Call, seconds: float | None = None, request: str = "") -> HttpResponse:
        """Answer a request (see Service.answer). The body is bytes or a Body."""
        with s3_request.count_requests() as cost:
            entry = _LogEntry(self._clock(), call, self.timer, self._log, cost, request)
            response = self._attempt(call, seconds, lambda: self._answer(call, entry))
        exposed = {"Access-Control-Expose-Headers": "*"}
        # Replay has a policy of its own; archived headers never come under their own names.
        is_guarded = "Content-Security-Policy" in response.headers
        guard = {} if is_guarded else header_fields.SANDBOX
        headers = {**http_message.CORS, **response.headers, **guard, **exposed}
        if "script" in headers.get("Content-Type", ""):
            # A cache in front must not answer what is refused to a worker (see _answer).
            headers["Vary"] = f"{headers.get('Vary', 'Accept-Encoding')}, Service-Worker"
        entry.response = replace(response, headers=headers)
        if not isinstance(response.body, Body):
            entry.add(response.size)
        return entry.response

    def takes(self, path: str) -> bool:
        """Return whether the path is answered here."""
        return any(path == ours or path.startswith(f"{ours}/") for ours in PATHS)

    def _answer(self, call: Call, entry: "_LogEntry") -> Reply | HttpResponse:
        if call.method == "OPTIONS":
            return Reply(204, _PLAIN, b"", http_message.preflight(_ALLOWED))
        if call.method not in _ALLOWED:
            allow = ", ".join(_ALLOWED)
            return Reply(405, _PLAIN, f"Use one of: {allow}.\n".encode(), {"Allow": allow})
        if not self._settings["content.serve"]:
            return _fault(404, "disabled", "Only metadata is served here.")
        if call.headers.get("service-worker") and call.path != f"{SCRIPTS}/worker.js":
            return _fault(403, "disabled", "No archived script becomes a service worker.")
        host = call.base
        call = replace(call, base=self._base or call.base, path=_own_path(call.path))
        manifest = self._manifest()
        entry.fields["snapshot"] = manifest.snapshot
        listed = _LISTS.get(f"/{call.path[1:].partition('/')[0]}")
        if listed is not None:
            entry.fields["query"] = call.query[:_LONGEST]
            return listed(call, self._search, manifest, self._settings)
        try:
            if call.path == REPLAY or call.path.startswith(f"{REPLAY}/"):
                entry.fields["query"] = call.path[:_LONGEST]
                return self._replay().answer(
                    call, manifest, lambda shown: self._deliver(call, shown, entry)
                )
            if call.path == SCRIPTS or call.path.startswith(f"{SCRIPTS}/"):
                entry.fields["query"] = call.path[:_LONGEST]
                self._replay()
                assert self._scripts is not None, "a store has to be given"
                deliver = partial(self._deliver, call, entry=entry, delivery=self._unsigned)
                return self._scripts.answer(call, host, manifest, deliver)
            request = representation.read_request(call)
            content = self._find(manifest, request)
            entry.fields["identifier"] = content.identifier[:_LONGEST]
            shown = Representation(content, request.coded, fixed=content.capture is not None)
            response = self._deliver(call, shown, entry)
            if isinstance(response, Reply):
                return response
            if response.status not in (200, 302):
                return response
            with ExitStack() as stack:
                if isinstance(response.body, Body):
                    stack.callback(response.body.close)  # if the links fail
                headers = neighbours.add_links(
                    response.headers, call, self._search, manifest, content.capture
                )
                stack.pop_all()
            return replace(response, headers=headers)
        except ArgumentError as error:
            return _fault(400, "argument", str(error))
        except ContentError as error:
            entry.fields["errors"] = [error.code]
            if error.status >= 500:
                _LOG.error("%a: %s: %s", call.path, error.code, error)
            reply = _fault(error.status, error.code, f"{error}.")
            if error.status == 503:
                later = self._unavailable(f"{error}.")
                reply = replace(later, headers={**reply.headers, **later.headers})
            return reply

    def _find(self, manifest: Manifest, request: ContentRequest) -> Content:
        """Return the content of an item, or of a file by its own URL or handle."""
        for identifier in request.identifiers:
            record = find_item(self._repository, manifest, identifier, fields=_FIELDS)
            if record is not None:
                return self._contents.find(manifest, record, file=request.file, at=request.at)
        if request.file:
            raise ContentError("unknown", "there is no such item")
        failure = ContentError("unknown", "no item has that identifier")
        for identifier in request.identifiers:
            try:
                return self._contents.find(manifest, None, file=identifier, at=request.at)
            except ContentError as error:
                if error.code not in ("unknown", "not-held"):
                    raise
                if error.code == "not-held" and request.at is not None:
                    failure = error
        raise failure

    def _replay(self) -> "Replay":
        """Return what replays; its libraries are read only where it is used."""
        if self._replaying is None:
            from functions.content.replay.replay import Replay
            from functions.content.replay.scripts import ScriptReplay

            most = None if self._largest is None else PART
            replay = Replay(
                self._repository,
                self._contents,
                self._search,
                self._settings,
                self.compress,
                most,
                lambda stamp, url: self._scripts.frame_address(stamp, url) if self._scripts else "",
            )
            if self._store is not None:
                self._scripts = ScriptReplay(replay, self._store)
            self._replaying = replay  # last: another thread then finds both
        return self._replaying

    def _deliver(
        self,
        call: Call,
        shown: Representation,
        entry: "_LogEntry",
        delivery: Delivery | None = None,
    ) -> Reply | HttpResponse:
        """Return the answer with a content, unless too many streams are open."""
        if not self._streams.acquire(blocking=False):
            return self._unavailable("Too many responses are in progress; try again later.")
        with ExitStack() as stack:
            stack.callback(self._streams.release)

            def log_end(count: int, error: Exception | None) -> None:
                self._streams.release()
                if error is not None:
                    entry.fields["errors"] = [getattr(error, "code", type(error).__name__)]
                entry.add(count)

            response = (delivery or self._delivery).answer(call, shown, log_end)
            if isinstance(response.body, Body):
                stack.pop_all()  # its end releases the place
        return response


def _own_path(path: str) -> str:
    """Return the path by which lists are known here, of their names below those of replay."""
    if not path.startswith(_TIMEMAPS):
        return path
    if path.removeprefix(_TIMEMAPS).rstrip("/") == "cdx":
        return "/cdx/search/cdx"
    return path.removeprefix(REPLAY)


def _fault(status: int, code: str, message: str) -> Reply:
    """Return a refusal: a line for people and a code for programs."""
    return Reply(status, _PLAIN, f"{message}\n".encode(), {"X-Archive-Error": code})


class _LogEntry:
    """The access log's entry for a call, written when its whole answer was sent."""

    def __init__(
        self,
        when: datetime,
        call: Call,
        timer: Callable[[], float],
        log: AccessLog | None,
        cost: s3_request.Tally,
        request: str,
    ) -> None:
        self.fields: dict[str, Any] = {"request": request} if request else {}
        self.response = HttpResponse(0, {})
        self._when, self._call = when, call
        self._timer, self._begun = timer, timer()
        self._log, self._cost = log, cost

    def add(self, count: int) -> None:
        """Write the entry; `count` bytes were sent."""
        if self._log is not None:
            took = self._timer() - self._begun
            response = replace(self.response, log_fields=self.fields)
            self._log.add(self._when, self._call, response, took, self._cost, count)
