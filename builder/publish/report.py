"""Report of a publish, as text and as JSON."""

from builder.snapshot.transaction import ChangeResult
from builder.text import tally
from functions.snapshot import instant


def report_text(built: ChangeResult) -> str:
    """Return the report in one or two lines."""
    if built.manifest is None:
        return "nothing new to publish; " + tally(
            built.records, "record is unchanged", "records are unchanged"
        )
    deleted = f"{built.deleted:,} of these deleted, " if built.deleted else ""
    report = (
        f"snapshot {built.manifest.snapshot} of {instant.to_text(built.manifest.effective)}: "
        f"{tally(built.records, 'record')} in {tally(built.manifest.sets, 'set')} ({built.new:,} "
        f"new, {built.changed:,} changed, {deleted}{built.unchanged:,} unchanged, "
        f"{tally(built.copies, 'further copy', 'further copies')}; "
        f"{tally(built.faults, 'new fault')})"
    )
    manifest = built.manifest
    if manifest.revisits:
        report += (
            f"\n{tally(manifest.revisits, 'revisit')}, {manifest.unresolved:,} of them without an "
            f"original; {built.moved:,} published earlier have a new original"
        )
    if collections := manifest.kinds().get("collection"):
        own = tally(collections, "record")
        report += f"\ncollections have {own} of these, which count neither as new nor as changed"
    return report


def report_document(built: ChangeResult) -> dict[str, object]:
    """Return the report as --json prints it; `snapshot` is None if there is no new one."""
    manifest = built.manifest
    names = ("records", "new", "changed", "deleted", "unchanged", "copies", "faults", "moved")
    return {
        "snapshot": manifest and manifest.snapshot,
        "effective": manifest and instant.to_text(manifest.effective),
        **{name: getattr(built, name) for name in names},
        "revisits": manifest and manifest.revisits,
        "unresolved": manifest and manifest.unresolved,
    }
