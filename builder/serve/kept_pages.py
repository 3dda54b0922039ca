"""Answers immutable pages from a folder, and puts each page there after its first rendering.

A page is immutable if a token requests it, its snapshot is kept, and the list continues after it.
It is answered from the folder until the pointer retires its snapshot (functions.oai.listing). Only
GETs are answered so. The kernel sends the file, or it is inflated for clients without gzip. All
workers share the folder.
"""

import hashlib
import io
import itertools
import json
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

from builder.serve.server import inflate
from functions.http import http_message
from functions.http.http_message import OAI_PATH, Call, FormError, HttpResponse
from functions.http.service import Service

_LOG = logging.getLogger("sheaf")

_HEAD = 1 << 14  # maximum bytes of a file's first line: headers and fields of the log, as JSON
_SPARE = 0.1  # the share of the bound that is free when the oldest pages were removed
_UNSENT = ("Content-Length", "Content-Type", "Content-Encoding")
_GZIP = "-gzip"  # the end of a tag of what is in gzip (http_message.write)
_LARGE = 1 << 20  # bytes of an answer that a client takes in gzip, if it takes any so


@dataclass
class KeptPages:
    """Answers by `answer`, or from `folder`, in the log of `service`. Thread-safe.

    `find_pin` is that of the application of lists (functions.oai.application).
    The folder holds at most `most` bytes, which each of the `workers` sees to. With `own_host`, the
    pages of each host name its own base URL.
    """

    answer: Callable[[Call], HttpResponse]
    find_pin: Callable[[Call], int | None]
    service: Service
    folder: Path
    most: int
    own_host: bool
    workers: int = 1

    def __post_init__(self) -> None:
        self._share = int(self.most * _SPARE) // self.workers
        self._added = self.most
        self._drafts = itertools.count()
        self._swept: object = None
        self._is_failing = False

    def __call__(self, call: Call) -> HttpResponse:
        """Answer a request, from the folder if the page is there and its snapshot is kept."""
        name = self._name(call)
        pin = self.find_pin(call) if name else None
        if not pin:
            response = self.answer(call)
            self._sweep()  # the pointer was read
            return response
        self._sweep()
        path = self.folder / f"{pin}-{name}"
        begun = self.service.timer()
        page: HttpResponse | None = None
        with suppress(OSError, ValueError):
            file = io.FileIO(path)
            line = file.read(_HEAD).partition(b"\n")[0]
            file.seek(len(line) + 1)
            page = HttpResponse(200, body=file, **json.loads(line))
        if page is None:
            swept = self._swept
            response = self.answer(call)
            is_fixed = "immutable" in response.headers.get("Cache-Control", "")
            if response.status == 200 and is_fixed:
                self._store(path, response)
            if self._swept != swept:  # the page may be one that was to be removed meanwhile
                self._swept = None
                self._sweep()
            return response
        if not call.wants_gzip(_LARGE):
            page = _inflate(page)
        if http_message.is_held(call.headers, page.headers.get("ETag", "")):
            page.body.close()  # type: ignore[union-attr]
            headers = {n: text for n, text in page.headers.items() if n not in _UNSENT}
            page = replace(page, status=304, headers=headers, body=b"")
        self.service.log(call, page, begun)
        return page

    def _name(self, call: Call) -> str | None:
        """Return the name of the page that a call asks for, if it may be kept."""
        is_list = call.path == OAI_PATH and "resumptionToken=" in call.query
        if call.method != "GET" or not is_list:
            return None
        try:
            pairs = sorted(call.pairs)  # their order and their escapes do not change the page
        except FormError:
            return None
        text = f"{call.base if self.own_host else ''}\0{urlencode(pairs)}"
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]

    def _store(self, path: Path, response: HttpResponse) -> None:
        """Keep a page. A failure, such as a full disk, is logged once, and the page is not kept."""
        if "Content-Encoding" not in response.headers:
            body = self.service.compress(response.body)  # type: ignore[arg-type]
            headers = {**response.headers, "Content-Encoding": "gzip"}
            headers |= {"ETag": f'{headers["ETag"][:-1]}{_GZIP}"', "Content-Length": str(len(body))}
            response = replace(response, headers=headers, body=body)
        head = {"headers": dict(response.headers), "log_fields": dict(response.log_fields)}
        line = json.dumps(head).encode() + b"\n"
        draft = self.folder / f".{os.getpid()}-{next(self._drafts)}"
        if len(line) > _HEAD or (size := len(line) + response.size) > self._share:
            return
        try:
            self._added += size
            if self._added > self._share:
                self._trim()
                self._added = size
            draft.write_bytes(line + bytes(response.body))  # type: ignore[arg-type]
            draft.rename(path)
            self._is_failing = False
        except OSError as error:
            draft.unlink(missing_ok=True)
            if not self._is_failing:
                _LOG.error("pages cannot be kept in %s: %s", self.folder, error)
            self._is_failing = True

    def _trim(self) -> None:
        """Remove the oldest pages, until a share of the bound is free."""
        free = self.most * (1 - _SPARE)
        with suppress(FileNotFoundError):  # another worker does the same
            for path in sorted(self.folder.iterdir(), key=lambda path: -path.stat().st_mtime_ns):
                free -= path.stat().st_size
                if free < 0:
                    path.unlink()

    def _sweep(self) -> None:
        """Remove the pages of retired snapshots, once for each change of the list of these."""
        pointer = self.service.find_pointer()
        state = pointer and (pointer.retired, pointer.expiry)
        if pointer is None or state == self._swept:
            return
        self._swept = state
        for path in self.folder.glob("[0-9]*-*"):
            if pointer.is_retired(int(path.name.partition("-")[0])):
                path.unlink(missing_ok=True)


def _inflate(page: HttpResponse) -> HttpResponse:
    """Return a kept page for a client without gzip; it is inflated while it is sent."""
    file = page.body
    assert isinstance(file, io.FileIO)
    start = file.tell()
    file.seek(-4, os.SEEK_END)  # the size of what is in gzip (RFC 1952, section 2.3.1)
    headers = {**page.headers, "Content-Length": str(int.from_bytes(file.read(4), "little"))}
    del headers["Content-Encoding"]
    headers["ETag"] = headers["ETag"].replace(_GZIP, "")
    file.seek(start)
    return replace(page, headers=headers, body=inflate(file))
