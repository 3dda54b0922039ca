"""Sample files of the demo, which lie in `files/`, and the web server that has some of them.

`library.warc.gz` is a recorded web site of three hosts, visited twice. `RePEc` is an archive with
two series and eight papers, three of which have full texts in `web`. `web/api` is a dataset, as a
platform with the API of InvenioRDM describes it. `revised` has a changed template and full text.
@BASE@ stands for the address of the web server.
"""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FILES = Path(__file__).parent / "files"
CRAWL = FILES / "library.warc.gz"
DATASET_RECORD = "/records/hives-2024"
"""The path of the dataset's landing page."""
CHANGED_PAPER, REMOVED_PAPER = "RePEc:lip:wpaper:2026-01", "RePEc:lip:wpaper:2026-04"
"""The paper whose abstract `revise_papers` changes, and the template that it removes."""
_TEXTS = frozenset({".rdf", ".json"})
"""Files in which @BASE@ is replaced; the others are copied as they are."""


def write_papers(folder: Path, base: str) -> None:
    """Write the RePEc archive into `folder`, for full texts at the URL `base` (no final slash).

    Raises OSError.
    """
    _copy(FILES / "RePEc", folder, base)


def write_web(folder: Path, base: str) -> None:
    """Write what `serve_web` has at the URL `base` (no final slash) into `folder`."""
    _copy(FILES / "web", folder, base)


def revise_papers(folder: Path, base: str) -> None:
    """Change an abstract of the RePEc archive in `folder`, and remove a template."""
    _copy(FILES / "revised" / "RePEc", folder, base)
    (folder / "lip" / "wpaper" / "04.rdf").unlink()


def revise_web(folder: Path, base: str) -> None:
    """Change a full text in `folder`, and remove another."""
    _copy(FILES / "revised" / "web", folder, base)
    (folder / "03.pdf").unlink()


def _copy(source: Path, target: Path, base: str) -> None:
    for path in (path for path in source.rglob("*") if path.is_file()):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in _TEXTS:
            copy.write_text(path.read_text("utf-8").replace("@BASE@", base), "utf-8")
        else:
            shutil.copyfile(path, copy)


class _WebHandler(SimpleHTTPRequestHandler):
    """Answers from a folder: `/api/records/x` is the file `api/records/x.json`."""

    def translate_path(self, path: str) -> str:
        """Return the file of a path."""
        file = super().translate_path(path)
        document = Path(f"{file}.json")
        return str(document) if document.is_file() else file

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the demo shows the gathered files instead."""


@contextmanager
def serve_web(folder: Path) -> Iterator[str]:
    """Serve `folder` on this machine while the block runs; give the URL without a final slash.

    Files may change meanwhile, and `Last-Modified` says when they did.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_WebHandler, directory=str(folder)))
    server.daemon_threads = False  # closing the server waits for its threads
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="demo-web")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
