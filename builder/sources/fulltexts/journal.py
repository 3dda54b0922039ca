"""Journal of a run: each response is recorded as it arrives, so a kill repeats no request.

A file is synced before its response is recorded, and stored after that. The next session with the
same folder continues the run with all recorded responses. A file that was not stored yet is then
stored from its temporary file.
"""

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from builder.http.errors import OUTCOMES, FetchError
from builder.obi.content import ExchangeRow
from builder.sources.fulltexts.results import FileContent, Moved, Result, Unchanged
from builder.store import documents
from builder.store.durable import LineJournal, sync, writing

_LINES, _FILES = "responses", "files"


@dataclass(slots=True)
class JournalContent:
    """What a journal has: results by URL, and the URLs that were asked for.

    `requested` maps each URL to whether a template says that it is a PDF. `stored` maps URLs to the
    run that stored their files, which may have been abandoned since. `tist` is the last run.
    """

    results: dict[str, Result] = field(default_factory=dict)
    requested: dict[str, bool] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    tist: int = 0


@dataclass(frozen=True, slots=True)
class ResponseJournal:
    """The journal in a folder, and the temporary files. Safe to use from threads.

    Its methods raise StoreError if the disk cannot be written.
    """

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def files(self) -> Path:
        """The folder of temporary files."""
        return self.folder / _FILES

    def begin(self, tist: int) -> JournalContent:
        """Return what is recorded, and record further responses for the run `tist`."""
        content = self.read()
        if content.tist != tist:
            self._add({"tist": tist})
        named = {r.path for r in content.results.values() if isinstance(r, FileContent)}
        with writing(self.files):
            self.files.mkdir(exist_ok=True)
            for path in self.files.iterdir():
                if path not in named:
                    path.unlink(missing_ok=True)
        return content

    def read(self) -> JournalContent:
        """Return what is recorded."""
        content = JournalContent()
        for line in self._lines.lines():
            with suppress(ValueError, TypeError, KeyError):
                _add(content, json.loads(line), self.files)
        return content

    def add(self, url: str, origin: str, pdf: bool, result: Result) -> None:
        """Record the response of a URL to which the URL `origin` led."""
        if isinstance(result, FileContent):
            with writing(self.files):
                sync(result.path)
        line: dict[str, Any] = {"url": url, "asked": origin, "pdf": pdf}
        if isinstance(result, FetchError):
            line["failure"] = [result.code, result.detail, result.status]
        elif isinstance(result, FileContent):
            head = result.head.decode("latin-1")
            line["file"] = asdict(result) | {"path": result.path.name, "head": head}
        else:
            line["moved" if isinstance(result, Moved) else "unchanged"] = asdict(result)
        self._add(line)

    def note_stored(self, url: str) -> None:
        """Record that a URL's file is in the store; if that is lost, it is stored again."""
        self._add({"stored": url}, durable=False)

    def clear(self) -> None:
        """Delete everything."""
        with writing(self.folder):
            self._lines.clear()

    @property
    def _lines(self) -> LineJournal:
        return LineJournal(self.folder / _LINES)

    def _add(self, line: Mapping[str, Any], durable: bool = True) -> None:
        with self._lock, writing(self.folder):
            self._lines.add(json.dumps(line).encode(), durable)


def _add(content: JournalContent, line: Mapping[str, Any], files: Path) -> None:
    """Add a line of the journal. Raises KeyError, TypeError or ValueError for another one."""
    if "tist" in line:
        content.tist = int(line["tist"])
        return
    if "stored" in line:
        content.stored[line["stored"]] = content.tist
        return
    content.results[line["url"]] = _decode(line, files)
    content.requested[line["asked"]] = bool(line["pdf"]) or content.requested.get(
        line["asked"], False
    )


def _decode(line: Mapping[str, Any], files: Path) -> Result:
    if "failure" in line:
        code, detail, status = line["failure"]
        OUTCOMES[code]
        return FetchError(code, detail, status)
    if "unchanged" in line:
        return Unchanged(**line["unchanged"])
    members = dict(line["moved"] if "moved" in line else line["file"])
    if members["exchange"] is not None:
        members["exchange"] = documents.build(ExchangeRow, members["exchange"])
    if "moved" in line:
        return Moved(**members)
    members |= {"path": files / members["path"], "head": members["head"].encode("latin-1")}
    return FileContent(**members)
