"""Summary of an ingest of archive files, as text and as JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from builder.ingest.ingest import IngestResult
from builder.intake.intake import IntakeSource
from builder.sources.events import FAULT_CODES
from builder.sources.rules import SETTINGS
from builder.text import tally

_LISTED = 20  # failed files


def text(done: IngestResult) -> str:
    """Return the summary as lines of text."""
    run = done.run
    skips: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for source in run.sources:
        skips.update(source.skips)
        codes.update(source.codes)
    captures = sum(source.captures for source in run.sources)
    lines = [
        f"{tally(captures, 'capture')} from {tally(len(run.sources), 'file')}, ready to publish"
    ]
    if done.whole:
        many = tally(len(done.whole), "large file was", "large files were")
        lines.append(
            f"{many} read in one piece, because the ranges did not join: " + ", ".join(done.whole)
        )
    if skips:
        listed = ", ".join(f"{n:,} {reason}" for reason, n in skips.most_common())
        left_out = tally(skips.total(), "record is not published", "records are not published")
        lines.append(f"{left_out}: {listed}")
        named = ", ".join(f'"{name}"' for why, name in SETTINGS.items() if why in skips)
        if named:
            how = f"`documents.include = [{named}]`"
            lines.append(f"  to publish them too, set {how} in sheaf.toml, then ingest again")
    lines += _failures([source for source in run.sources if source.failed])
    if codes:
        told = sum(source.faults for source in run.sources)
        rows = "each a row" if told == codes.total() else f"reported in {tally(told, 'row')}"
        lines.append(
            f'{tally(codes.total(), "fault")}, {rows} of `sheaf query "FROM faults"` '
            "once published:"
        )
        lines += [f"  {n:,} {code}: {FAULT_CODES[code]}" for code, n in codes.most_common()]
    return "\n".join(lines)


def document(done: IngestResult) -> dict[str, Any]:
    """Return the summary as a JSON document."""
    return {
        "run": done.run.name,
        "sources": [asdict(source) for source in done.run.sources],
        "failed": sum(source.failed for source in done.run.sources),
        "read_in_one_piece": list(done.whole),
    }


def _failures(failed: Sequence[IntakeSource]) -> list[str]:
    if not failed:
        return []
    files = tally(len(failed), "file")
    lines = [f"{files} failed: unreadable, or no captures where some were expected"]
    lines += [f"  {source.path}: {', '.join(source.codes)}" for source in failed[:_LISTED]]
    if len(failed) > _LISTED:
        lines.append(f"  and {len(failed) - _LISTED:,} more, which --json lists")
    return lines
