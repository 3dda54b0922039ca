"""Web server of full texts and other files, over real HTTP on the loopback interface."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_PDF = "application/pdf"


class Shelf:
    """Full texts by path; changes apply from the next request on."""

    def __init__(self, texts: dict[str, bytes]) -> None:
        self._texts = dict(texts)
        self._media: dict[str, str] = {}

    def put(self, path: str, text: bytes, media: str = _PDF) -> None:
        """Serve `text` at `path` from now on, with that media type."""
        self._texts[path], self._media[path] = text, media

    def take(self, path: str) -> None:
        """Answer 404 at `path` from now on."""
        del self._texts[path]

    def media(self, path: str) -> str:
        """Return the media type of the text at `path`."""
        return self._media.get(path, _PDF)

    def answer(self, path: str, known: str | None) -> tuple[HTTPStatus, str | None, bytes]:
        """Return status, ETag and body for a client whose cached ETag is `known`."""
        text = self._texts.get(path)
        if text is None:
            return HTTPStatus.NOT_FOUND, None, b"There is nothing here.\n"
        tag = f'"{hashlib.sha256(text).hexdigest()[:16]}"'
        if known == tag:
            return HTTPStatus.NOT_MODIFIED, tag, b""
        return HTTPStatus.OK, tag, text


class _ShelfServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing the server waits for its threads

    def __init__(self, shelf: Shelf) -> None:
        super().__init__(("127.0.0.1", 0), _ShelfHandler)
        self.shelf = shelf


class _ShelfHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: _ShelfServer

    def do_GET(self) -> None:
        """Answer one GET and close the connection."""
        status, tag, body = self.server.shelf.answer(self.path, self.headers.get("If-None-Match"))
        self.send_response(status)
        if tag is not None:
            self.send_header("ETag", tag)
        if status != HTTPStatus.NOT_MODIFIED:
            media = self.server.shelf.media(self.path)
            kind = media if status == HTTPStatus.OK else "text/plain"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the demo shows the gathered files instead."""


@contextmanager
def serve(shelf: Shelf) -> Iterator[str]:
    """Serve the texts while the block runs; give the URL without a final slash."""
    with _ShelfServer(shelf) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="demo-shelf")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
