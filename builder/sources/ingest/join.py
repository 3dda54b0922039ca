"""Join of the results of all splits: the sources and the rows of a run.

A file whose ranges do not join is read again in one piece, as a part of its own. The rows of an
ingest by one machine are gathered in few large files. Those of many machines stay where they are,
because one machine would fetch them all: `run.json` names their files in the order of the plan.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder.intake import intake, row_files
from builder.sources.ingest import workdir
from builder.sources.ingest.plan import IngestPlan, SplitResult
from builder.sources.ingest.result import judge
from builder.sources.ingest.splits import ArchiveFile
from functions.database import engine
from functions.snapshot.store import Reader, Writer

Reread = Callable[[Mapping[int, ArchiveFile]], Iterable[SplitResult]]
"""Reads files, by their numbers in the plan, in one piece each; returns the results in order."""


@dataclass
class FileJoin:
    """The files of a plan, in order, each with the results that have its rows.

    `store` has the parts. `whole` names the files that were read in one piece although they are
    large.
    """

    store: Reader
    plan: IngestPlan
    database: engine.Connection
    say: Callable[[str], None]
    whole: list[str] = field(default_factory=list)
    _files: list[tuple[SplitResult, ...]] = field(default_factory=list)
    _renumbered: set[int] = field(default_factory=set)
    _renamed: set[Path] = field(default_factory=set)

    def join(self, results: Iterable[SplitResult], reread: Reread) -> None:
        """Take the results of all files in the order of the plan, and join those of ranges."""
        torn: dict[int, ArchiveFile] = {}
        odd = set()
        for number, pieces in enumerate(_group(results)):
            self._files.append(pieces)
            file = pieces[0].split.file
            if len(pieces) == 1:
                continue
            if any(map(_is_lost, pieces)):
                # A file of which a part failed again and again is not opened once more.
                flawed = (piece.split.file for piece in pieces if piece.split.file.flaw)
                torn[number] = next(flawed, file)
            elif not self._renumber(number, pieces[1:]):
                torn[number] = file
                odd.add(number)
                self.say(f"{file.label}: its ranges do not join, so it is read in one piece")
        for (number, file), result in zip(torn.items(), reread(torn), strict=True):
            self._files[number] = (result,)
            if number in odd and not _is_lost(result):
                self.whole.append(file.label)

    def sources(self) -> Iterator[intake.IntakeSource]:
        """Yield the result of each file; tell of those that changed while they were read."""
        for first, *ranges in self._files:
            source, file = first.source, first.split.file
            if any(piece.changed for piece in (first, *ranges)):
                self.say(
                    f"{file.label} changed while it was read: ingest it again when it is complete"
                )
            if ranges:
                source = workdir.join_ranges(ranges, source.digest)
            yield judge(file, source)

    def gather(self, folder: Path, number: int | None = None) -> Iterator[tuple[str, Path]]:
        """Write the rows of all files, or of one, as few large files in `folder`; name them.

        Each is written when it is requested. The rows of an index are in large files already, which
        come last, with new names.
        """
        files = self._files if number is None else [self._files[number]]
        every = [piece for pieces in files for piece in pieces]
        for table in ("captures", "faults"):
            spans = (
                row_files.RowSpan(
                    self._fetch(result.file(table)),
                    getattr(result, f"{table}_at"),
                    getattr(result.source, table),
                )
                for result in every
                if not result.own and getattr(result.source, table)
            )
            for path in row_files.gather_rows(self.database, spans, table, folder, self._renamed):
                yield path.name, path
        own = [name for result in every if result.own for name in result.files()]
        for place, name in enumerate(own):
            table = name.rpartition("/")[2].partition("-")[0]
            yield intake.part_path(Path(), table, f"own-{place:06}").name, self._fetch(name)

    def place(self, store: Writer, folder: Path) -> dict[str, None]:
        """Return the names of all data files in the order of the plan.

        Only the rows of files with renumbered captures are gathered in `folder` and put into the
        store; the others are there.
        """
        names: dict[str, None] = {}
        for number, pieces in enumerate(self._files):
            if number not in self._renumbered:
                names |= dict.fromkeys(name for piece in pieces for name in piece.files())
                continue
            for name, path in self.gather(folder, number):
                joined = f"joined-{number:06}/{name}"
                with intake.writing(path), path.open("rb") as file:
                    store.put(self.plan.key(joined), file)
                path.unlink()
                names[joined] = None
        return names

    def _renumber(self, number: int, ranges: tuple[SplitResult, ...]) -> bool:
        """Return whether a file's ranges join; renumber captures that occur in several of them."""
        if not workdir.ranges_meet(ranges):
            return False
        captures = [
            self._fetch(piece.file("captures")) for piece in ranges if piece.source.captures
        ]
        renamed = workdir.renumber_captures(self.database, captures)
        if renamed:
            self._renamed |= renamed
            self._renumbered.add(number)
        return renamed is not None

    def _fetch(self, name: str) -> Path:
        return self.store.local(self.plan.key(name))


def _group(results: Iterable[SplitResult]) -> Iterator[tuple[SplitResult, ...]]:
    """Yield the results of each file: of the whole, or of its digest and its ranges."""
    pieces: list[SplitResult] = []
    for result in results:
        if pieces and result.split.kind != "range":
            yield tuple(pieces)
            pieces = []
        pieces.append(result)
    if pieces:
        yield tuple(pieces)


def _is_lost(result: SplitResult) -> bool:
    """Return whether a split could not be read; a fault then says so."""
    return "unreadable" in result.source.codes
