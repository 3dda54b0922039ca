"""`sheaf verify`."""

import argparse
import os
import secrets

from builder.context import Context
from builder.errors import UsageError
from builder.progress import ByteBar
from builder.store.findings import DAMAGE, Finding
from builder.text import tally
from builder.verify.verify import Sample, Verified, VerifyRuntime, verify


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--newest", action="store_true", help="check only the newest snapshot")
    parser.add_argument(
        "--sample", type=float, metavar="PERCENT",
        help="read this percentage of the data files; check only existence and size of the others",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed of the sample (default: random)"
    )
    parser.add_argument(
        "--repair", action="store_true",
        help="rewrite views.sql, current.json and snapshots/newest.json from the rest of the "
        "store if they are damaged, missing or old",
    )  # fmt: skip


def run(context: Context) -> int:
    """Check that the store is complete and consistent.

    Every kept snapshot is checked down to each row, and in the obi store every run and object. Exit
    status 1 means damage; leftovers are only reported.
    """
    arguments = context.arguments
    sample = _sample(arguments.sample, arguments.seed)
    means = VerifyRuntime(
        context.now, ByteBar, context.configuration["publish.memory"], os.cpu_count() or 1
    )
    done = verify(
        context.published_store(),
        means,
        newest_only=arguments.newest,
        sample=sample,
        repair=arguments.repair,
    )
    context.result(_account(done, sample), _document(context, done, sample))
    return 1 if done.damaged else 0


def _sample(percent: float | None, seed: int | None) -> Sample | None:
    if percent is None:
        if seed is not None:
            raise UsageError("--seed needs --sample PERCENT")
        return None
    if not 0 < percent <= 100:
        raise UsageError(f"--sample {percent:g}: expected a number above 0 and up to 100")
    return Sample(percent, secrets.randbelow(1 << 31) if seed is None else seed)


def _account(done: Verified, sample: Sample | None) -> str:
    lines = []
    for finding in done.findings:
        lines.append(f"{finding.kind}: {finding.object}: {finding.problem} ({finding.code})")
        lines.append(f"    {finding.remedy}")
    read = f"{done.read:,} of {tally(done.files, 'data file')} read ({tally(done.bytes, 'byte')})"
    if sample is not None:
        read += f", drawn with --seed {sample.seed}"
    damage, notes = _counts(done.findings)
    lines.append(f"{tally(len(done.snapshots), 'snapshot')} checked, {read}")
    if done.runs:
        objects = f"{done.objects_read:,} of {tally(done.objects, 'object')} read"
        lines.append(f"{tally(done.runs, 'run')} of the obi store checked, {objects}")
    if done.datasets:
        objects = f"{done.kept_read:,} of {tally(done.kept, 'object')} read"
        lines.append(f"{tally(done.datasets, 'archived dataset')} checked, {objects}")
    lines.append(f"{damage:,} damaged, {notes:,} noted" if damage or notes else "no problems found")
    return "\n".join(lines)


def _document(context: Context, done: Verified, sample: Sample | None) -> dict[str, object]:
    damage, notes = _counts(done.findings)
    return {
        "store": context.store.address,
        "snapshots": list(done.snapshots),
        "files": done.files,
        "read": done.read,
        "bytes": done.bytes,
        "runs": done.runs,
        "objects": done.objects,
        "objects_read": done.objects_read,
        "datasets": done.datasets,
        "kept": done.kept,
        "kept_read": done.kept_read,
        "sample": sample and {"percent": sample.percent, "seed": sample.seed},
        "damage": damage,
        "notes": notes,
        "findings": [
            {
                "kind": finding.kind,
                "code": finding.code,
                "object": finding.object,
                "problem": finding.problem,
                "remedy": finding.remedy,
            }
            for finding in done.findings
        ],
    }


def _counts(findings: tuple[Finding, ...]) -> tuple[int, int]:
    damage = sum(finding.kind == DAMAGE for finding in findings)
    return damage, len(findings) - damage
