"""Result of an ingest of archive files, as text and as JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from builder.intake.captures import FAULT_CODES, HARMLESS_CODES
from builder.intake.intake import IntakeRun, IntakeSource
from builder.sources.webarchives.ingest.splits import ArchiveFile
from builder.sources.webarchives.rules import SETTINGS
from builder.text import tally

_LISTED = 20  # failed files


@dataclass(frozen=True, slots=True)
class IngestResult:
    """A committed run, and the large files that could not be read in ranges."""

    run: IntakeRun
    whole: tuple[str, ...]

    def text(self) -> str:
        """Return a summary as lines of text."""
        sources = self.run.sources
        captures = sum(source.captures for source in sources)
        lines = [
            f"{tally(captures, 'capture')} from {tally(len(sources), 'file')}, ready to publish"
        ]
        if self.whole:
            many = tally(len(self.whole), "large file was", "large files were")
            names = ", ".join(self.whole)
            lines.append(f"{many} read in one piece, because the ranges did not join: {names}")
        lines += _skips(sources)
        lines += _name_twins(sources)
        lines += [
            f"{source.source} was a stream, so its content cannot be served: to serve it, save the "
            "stream under that name in a place of content.archives"
            for source in sources
            if source.path == "-" and source.captures
        ]
        if self.is_empty and not all(source.failed for source in sources):
            lines.append(
                "nothing was taken: no file is one that Sheaf reads, as the next lines say"
            )
            lines += map(_describe, sources[:_LISTED])
        if failed := [source for source in sources if source.failed]:
            files = tally(len(failed), "file")
            lines.append(f"{files} failed: unreadable, or no captures where some were expected")
            lines += map(_describe, failed[:_LISTED])
            if len(failed) > _LISTED:
                lines.append(f"  and {len(failed) - _LISTED:,} more, which --json lists")
        lines += _faults(sources)
        return "\n".join(lines)

    @property
    def is_empty(self) -> bool:
        """Whether no file was an archive or an index."""
        return all("not-an-archive" in source.codes for source in self.run.sources)

    def document(self) -> dict[str, Any]:
        """Return the summary as a JSON document."""
        return {
            "run": self.run.name,
            "sources": [asdict(source) for source in self.run.sources],
            "failed": sum(source.failed for source in self.run.sources),
            "read_in_one_piece": list(self.whole),
        }


def _describe(source: IntakeSource) -> str:
    problem = f" ({source.problem})" if source.problem else ""
    return f"  {source.path}: {', '.join(source.codes)}{problem}"


def _skips(sources: Sequence[IntakeSource]) -> list[str]:
    skips = sum((Counter(source.skips) for source in sources), Counter[str]())
    if not skips:
        return []
    listed = ", ".join(f"{n:,} {reason}" for reason, n in skips.most_common())
    left_out = tally(skips.total(), "record is not published", "records are not published")
    lines = [f"{left_out}: {listed}"]
    if named := ", ".join(f'"{name}"' for why, name in SETTINGS.items() if why in skips):
        how = f"`documents.include = [{named}]`"
        lines.append(f"  to publish them too, set {how} in sheaf.toml, then ingest again")
    return lines


def _name_twins(sources: Sequence[IntakeSource]) -> list[str]:
    """Return a warning of files of one name: captures and indexes name files without a folder."""
    digests: dict[str, set[str]] = {}
    for source in sources:
        if source.captures:
            digests.setdefault(source.path.rpartition("/")[2], set()).add(source.digest)
    names = [name for name, files in digests.items() if len(files) > 1]
    if not names:
        return []
    shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    many = tally(len(names), "file name belongs", "file names belong")
    return [f"{many} to different files, of which indexes cannot tell: {shown}; rename them"]


def _faults(sources: Sequence[IntakeSource]) -> list[str]:
    codes = sum((Counter(source.codes) for source in sources), Counter[str]())
    if not codes:
        return []
    count = sum(source.faults for source in sources)
    rows = "each a row" if count == codes.total() else f"reported in {tally(count, 'row')}"
    return [
        f'{tally(codes.total(), "fault")}, {rows} of `sheaf query "FROM faults"` once published:',
        *(f"  {n:,} {code}: {FAULT_CODES[code]}" for code, n in codes.most_common()),
    ]


def judge(file: ArchiveFile, source: IntakeSource) -> IntakeSource:
    """Return the result of a file with `failed`; a file that failed is read again next time.

    It failed if it could not be read, or gave no captures where it should: the user named it, or
    its name or content is an archive's. An intact archive may have none.
    """
    expected = file.is_expected or source.format != ""
    harmless = HARMLESS_CODES.issuperset(source.codes)
    failed = "unreadable" in source.codes or (expected and not source.captures and not harmless)
    return replace(source, failed=failed, reading=None if failed else source.reading)
