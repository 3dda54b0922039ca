"""Ingest: archive files in, a run of intake out; one file a task, tasks side by side."""

import hashlib
import io
import multiprocessing
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty
from typing import Any, BinaryIO

from builder import intake
from builder.errors import UsageError
from builder.sources import recognise
from builder.sources.event import Capture, Crawl, Event, Fault, Rules
from builder.sources.webarchive import read
from functions.snapshot import setspec
from functions.snapshot.errors import StoreError
from functions.snapshot.store import Writer

_REPORT_EVERY = 500  # events
_reports: Any = None  # in a worker process: where it reports its progress

Advance = Callable[[int, int, int], None]
"""Told of bytes read, captures found and files finished since the last call."""


@dataclass(frozen=True, slots=True)
class Task:
    """One archive file to read: where, what to do with it, and where its rows go."""

    number: int
    path: Path
    folder: Path
    sets: tuple[str, ...]
    rules: Rules


def find(sources: Sequence[str]) -> list[Path]:
    """Return the files that the sources name: files themselves, and all that folders hold.

    Raises UsageError for a source that is not there, and for a folder without files.
    """
    found: list[Path] = []
    for source in sources:
        path = Path(source)
        if "://" in source:
            raise UsageError(f"{source}: only files and folders can be ingested so far")
        if source and path.is_dir():
            inside = _inside(path)
            if not inside:
                raise UsageError(f"{source} is an empty folder: expected archive files in it")
            found += inside
        elif source and path.is_file():
            found.append(path)
        elif source and path.exists():
            raise UsageError(f"{source} is no regular file: pipe it in, and name - as the source")
        else:
            raise UsageError(f"{source or repr(source)}: no such file or folder")
    return list(dict.fromkeys(found))


def _inside(folder: Path) -> list[Path]:
    """Return the files below a folder, in order, but those whose path has a hidden part."""

    def fail(error: OSError) -> None:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from error

    found: list[Path] = []
    for below, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(below) / name for name in names if not name.startswith("."))
        found += (path for path in paths if path.is_file())
    return sorted(found)


def collection_sets(collections: Sequence[str]) -> tuple[str, ...]:
    """Return the sets of `--collection` values, whose levels are separated by colons."""
    specs = []
    for collection in collections:
        levels = collection.split(":")
        if not all(levels):
            raise UsageError(f"--collection {collection!r}: a level between colons is empty")
        try:
            specs.append(setspec.join("collection", *levels))
        except UnicodeEncodeError as error:
            raise UsageError(f"--collection {collection!r}: expected UTF-8") from error
    return setspec.most_specific(specs)


def ingest(
    store: Writer,
    paths: Sequence[Path],
    sets: tuple[str, ...],
    rules: Rules,
    jobs: int,
    name: str,
    advance: Advance,
) -> intake.Run:
    """Read the archive files and commit what they gave as one run of intake, `name`.

    Raises UsageError where not one of the files is an archive; then nothing is written.
    """
    with tempfile.TemporaryDirectory(prefix="sheaf-ingest-") as scratch:
        folder = Path(scratch)
        tasks = [Task(n, path, folder, sets, rules) for n, path in enumerate(paths)]
        results = _parallel(tasks, jobs, advance) if jobs > 1 else _serial(tasks, advance)
        run = intake.Run(name, tuple(results))
        if all(source.format == "" for source in run.sources):
            raise UsageError(_no_archive(run.sources))
        intake.commit(store, run, folder)
    return run


def _no_archive(sources: Sequence[intake.Source]) -> str:
    kinds = "an ARC, WARC or WACZ file"
    if len(sources) == 1:
        (source,) = sources
        codes = ", ".join(source.codes)
        return f"{source.path} is not {kinds} ({codes}): nothing was ingested"
    return f"none of the {len(sources)} files is {kinds}: nothing was ingested"


def _serial(tasks: Sequence[Task], advance: Advance) -> Iterator[intake.Source]:
    for task in tasks:
        yield _read(task, advance)


def _parallel(tasks: Sequence[Task], jobs: int, advance: Advance) -> Iterator[intake.Source]:
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(tasks)), context, initializer=_begin, initargs=(reports,)
    )
    try:
        with _uninterrupted():  # which workers inherit: their parent ends them
            futures = [pool.submit(_work, task) for task in tasks]
        for future in futures:
            while not future.done() or not reports.empty():
                try:
                    advance(*reports.get(timeout=0.2))
                except Empty:
                    continue
            yield future.result()
    except BrokenProcessPool as error:
        raise StoreError(
            "a process that was reading was ended from outside, perhaps for want of memory: "
            "try again with fewer --jobs"
        ) from error
    except BaseException:
        for worker in set(multiprocessing.active_children()) - before:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Put an interrupt off until the context ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(reports: Any) -> None:
    global _reports
    _reports = reports


def _work(task: Task) -> intake.Source:
    return _read(task, lambda *report: _reports.put(report))


def _read(task: Task, advance: Advance) -> intake.Source:
    """Read one file, write its captures and faults, and return what it gave."""
    part = _Part(task)
    digest = form = ""
    try:
        with task.path.open("rb") as file:
            form = recognise.recognise(recognise.beginning(file)) or ""
            file.seek(0)
            stream: Any = file if form == "wacz" else _Measured(file)
            part.take(read(stream, part.name, task.rules), stream, advance)
            if form == "wacz":
                file.seek(0)
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            else:
                digest = stream.finish()
    except OSError as error:
        detail = error.strerror or str(error)
        part.fault(Fault(part.name, None, "unreadable", None, detail, "passed over"))
    finally:
        part.close()
    advance(0, 0, 1)
    return part.source(digest, form)


class _Part:
    """What one file gives: rows written as they come, and counts."""

    def __init__(self, task: Task) -> None:
        self.name = _text(task.path.name)
        self._task = task
        self._rows = intake.Part(task.folder, f"{task.number:06}")
        self._captures = 0
        self._skips: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._crawl = Crawl()

    def take(self, events: Iterator[Event], stream: BinaryIO, advance: Advance) -> None:
        """Write the events of a file, and tell of progress now and then."""
        reported = before = 0
        for number, event in enumerate(events, 1):
            if isinstance(event, Capture):
                self._captures += 1
                self._rows.capture(event, tuple(sorted(event.sets + self._task.sets)))
            elif isinstance(event, Fault):
                self.fault(event)
            elif isinstance(event, Crawl):
                self._crawl = self._crawl.filled(event)
            else:
                self._skips[event.reason] += 1
            if number % _REPORT_EVERY == 0:
                advance(stream.tell() - before, self._captures - reported, 0)
                before, reported = stream.tell(), self._captures
        advance(max(0, self._task.path.stat().st_size - before), self._captures - reported, 0)

    def fault(self, fault: Fault) -> None:
        """Write a fault."""
        self._codes[fault.code] += 1
        self._rows.fault(fault)

    def close(self) -> None:
        """Finish the files."""
        self._rows.close()

    def source(self, digest: str, form: str) -> intake.Source:
        """Return what the file gave."""
        return intake.Source(
            source=self.name,
            digest=digest,
            path=_text(str(self._task.path)),
            format=form,
            bytes=self._task.path.stat().st_size,
            captures=self._captures,
            skipped=self._skips.total(),
            faults=self._codes.total(),
            skips=dict(self._skips),
            codes=dict(self._codes),
            collections=tuple(s for s in self._task.sets if s.startswith("collection:")),
            **asdict(self._crawl),
        )


def _text(path: str) -> str:
    """Return a path as text that any XML can hold; what is no UTF-8 becomes a question mark."""
    known = path.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "?" for c in known)


class _Measured(io.RawIOBase):
    """A file read forwards only, hashed on the way."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._digest.update(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def finish(self) -> str:
        """Read what is left, and return the SHA-256 of the whole."""
        while self.read(1 << 20):
            pass
        return self._digest.hexdigest()
