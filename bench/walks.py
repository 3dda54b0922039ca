"""The modules that one thing passes through: a capture, a request, a token, a publish, a dataset.

    python -m bench.walks [NAME...]

The demo runs in this process under a profiler. Of each walk it notes the files of functions/ and
builder/ whose code is entered between a first function and its return, in the order in which they
are entered. Without names the table counts them; with names their files are listed.
docs/reference/architecture.md describes the same walks.
"""

import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from bench.house import ROOT, TOPS
from builder.commands import cli
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.http.http_message import Call
from functions.oai.application import Application
from functions.reading.duck_repository import DuckRepository

WALKS = {
    # name: what is followed, and its first function
    "capture": (
        "WARC bytes to rows of the intake",
        "builder/sources/webarchives/ingest/split_reader.py:carry_out",
    ),
    "request": ("ListRecords to XML", "functions/oai/application.py:answer"),
    "token": ("a resumption token to its place in the list", "functions/oai/token.py:of_store"),
    "publish": ("intake to snapshot", "builder/publish/publish.py:publish"),
    "dataset": ("a DOI to verified files", "builder/sources/datasets/ingest.py:process"),
}


class Trace:
    """Notes the product's files in the order in which their code is entered, by walk."""

    def __init__(self) -> None:
        self.files: dict[str, list[str]] = {name: [] for name in WALKS}
        self._first = {first: name for name, (_, first) in WALKS.items()}
        self._open: dict[str, FrameType] = {}
        self._known: dict[str, str] = {}

    @contextmanager
    def run(self) -> Iterator[None]:
        """Note what is called until the context ends, also in threads that begin meanwhile."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return"):
            return
        path = self._path(frame.f_code.co_filename)
        if not path:
            return
        place = f"{path}:{frame.f_code.co_name}"
        name = self._first.get(place)
        if event == "return":
            if name and self._open.get(name) is frame:
                del self._open[name]
            return
        if name and name not in self._open:
            self._open[name] = frame
        for walk in self._open:
            if path not in self.files[walk] and frame.f_code.co_name != "<module>":
                self.files[walk].append(path)

    def _path(self, file: str) -> str:
        if file not in self._known:
            inside = file.startswith(str(ROOT)) and "/.venv" not in file
            path = Path(file).relative_to(ROOT).as_posix() if inside else ""
            self._known[file] = path if path.partition("/")[0] in TOPS else ""
        return self._known[file]


def follow() -> dict[str, list[str]]:
    """Run the demo and one request; return the files of each walk."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(name) / "demo"
        with trace.run():
            cli.main(["demo", "--once", "--port", "0", "--folder", str(folder)])
        _ask(trace, folder / "store")
    return trace.files


def _ask(trace: Trace, store: Path) -> None:
    """Ask for two pages of records; the demo's own server is another process."""
    settings = configuration.parse("[pages]\nrecords = 20", {})
    with closing(DuckRepository(FolderStore(store))) as repository:
        application = Application(repository, settings, lambda: datetime.now(UTC))
        with trace.run():
            body = _get(application, "metadataPrefix=oai_dc")
            token = body.partition("<resumptionToken")[2].partition(">")[2].partition("<")[0]
            _get(application, f"resumptionToken={token}")


def _get(application: Application, arguments: str) -> str:
    call = Call("GET", "http://127.0.0.1", "/oai", f"verb=ListRecords&{arguments}")
    return bytes(application.answer(call).body).decode()  # type: ignore[arg-type]


def main() -> None:
    """Print the table, or the files of the walks that are named."""
    files = follow()
    for name, (what, _) in WALKS.items():
        if name in sys.argv[1:]:
            print("\n".join((f"{name}: {what}", *(f"  {path}" for path in files[name]))))
        elif len(sys.argv) == 1:
            print(f"{name:8} {len(files[name]):3}  {what}")


if __name__ == "__main__":
    main()
