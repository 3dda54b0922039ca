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

from builder.gather.pdf_text import PdfText
from builder.gather.results import FileContent, Moved, Result, Unchanged
from builder.http.errors import OUTCOMES, FetchError
from builder.intake.intake import writing
from builder.obi.content import ExchangeRow
from builder.store import documents
from builder.store.durable import LineJournal, sync

_LINES, _FILES = "responses", "files"


@dataclass(slots=True)
class JournalContent:
    """What a journal has: results by URL, the URLs that were asked for, and texts by SHA-256.

    `asked` maps each URL to whether a template says that it is a PDF. `stored` maps URLs to the run
    that stored their files, which may have been abandoned since. `tist` is the last run.
    """

    results: dict[str, Result] = field(default_factory=dict)
    asked: dict[str, bool] = field(default_factory=dict)
    texts: dict[str, PdfText] = field(default_factory=dict)
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
        found = self.read()
        if found.tist != tist:
            self._add({"tist": tist})
        named = {r.path for r in found.results.values() if isinstance(r, FileContent)}
        with writing(self.files):
            self.files.mkdir(exist_ok=True)
            for path in self.files.iterdir():
                if path not in named:
                    path.unlink(missing_ok=True)
        return found

    def read(self) -> JournalContent:
        """Return what is recorded."""
        found = JournalContent()
        for line in self._lines.lines():
            with suppress(ValueError, TypeError, KeyError):
                _add(found, json.loads(line), self.files)
        return found

    def add(self, url: str, asked: str, pdf: bool, result: Result, text: PdfText | None) -> None:
        """Record the response of a URL to which the URL `asked` led."""
        if isinstance(result, FileContent):
            with writing(self.files):
                sync(result.path)
        told = {"url": url, "asked": asked, "pdf": pdf, **_encode(result)}
        self._add(told | ({"text": asdict(text)} if text else {}))

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

    def _add(self, told: Mapping[str, Any], durable: bool = True) -> None:
        with self._lock, writing(self.folder):
            self._lines.add(json.dumps(told).encode(), durable)


def _encode(result: Result) -> dict[str, Any]:
    if isinstance(result, FetchError):
        return {"failure": [result.code, result.detail, result.status]}
    if isinstance(result, FileContent):
        told = asdict(result) | {"path": result.path.name, "head": result.head.decode("latin-1")}
        return {"file": told}
    return {"moved" if isinstance(result, Moved) else "unchanged": asdict(result)}


def _add(found: JournalContent, told: Mapping[str, Any], files: Path) -> None:
    """Add a line of the journal. Raises KeyError, TypeError or ValueError for another one."""
    if "tist" in told:
        found.tist = int(told["tist"])
        return
    if "stored" in told:
        found.stored[told["stored"]] = found.tist
        return
    result = _decode(told, files)
    if "text" in told and isinstance(result, FileContent):
        found.texts[result.sha256] = PdfText(**told["text"])
    found.results[told["url"]] = result
    found.asked[told["asked"]] = bool(told["pdf"]) or found.asked.get(told["asked"], False)


def _decode(told: Mapping[str, Any], files: Path) -> Result:
    if "failure" in told:
        code, detail, status = told["failure"]
        OUTCOMES[code]
        return FetchError(code, detail, status)
    if "unchanged" in told:
        return Unchanged(**told["unchanged"])
    held = dict(told["moved"] if "moved" in told else told["file"])
    if held["exchange"] is not None:
        held["exchange"] = documents.build(ExchangeRow, held["exchange"])
    if "moved" in told:
        return Moved(**held)
    held |= {"path": files / held["path"], "head": held["head"].encode("latin-1")}
    return FileContent(**held)
