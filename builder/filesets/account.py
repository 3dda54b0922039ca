"""Summaries of outcomes for people. Pure."""

from builder.display import tally
from builder.filesets import status
from builder.filesets.item import FilesetManifestFile, IngestOutcome
from builder.terminal import visible

_UNITS = ("byte", "kB", "MB", "GB", "TB", "PB")


def describe(outcome: IngestOutcome, whole: bool = False) -> str:
    """Return one line about an outcome; with `whole`, more lines list the title and the files."""
    item, archived = outcome.item, outcome.archived
    parts = [f"{outcome.status}  {outcome.request.base_url}"]
    if item is not None:
        where = [item.platform_name, item.platform_domain, item.platform_id]
        version = f" v{item.version}" if item.version else ""
        parts.append(" ".join(word for word in where if word) + version)
        files = (archived.manifest if archived else ()) or item.manifest or ()
        if files:
            given = tuple(file for file in files if file.status != "withheld")
            withheld = f", {len(files) - len(given):,} withheld" if len(given) < len(files) else ""
            parts.append(f"{tally(len(given), 'file')}, {_total(given)}{withheld}")
        if item.until:
            parts.append(f"until {item.until}")
    if strategy := archived.ingest_strategy if archived else outcome.strategy:
        parts.append(strategy)
    detail = " ".join(
        part for part in (outcome.code and f"({outcome.code})", outcome.detail) if part
    )
    if detail and not status.of(outcome.status).hit:
        parts.append(detail)
    lines = [visible(": ".join(parts))]
    if whole:
        if item is not None and item.description.title:
            lines.append(f"  {visible(item.description.title)}")
        if outcome.reason:
            lines.append(f"  {visible(f'{outcome.strategy}: {outcome.reason}')}")
        lines += [_file(file) for file in (item.manifest if item else None) or ()]
    return "\n".join(lines)


def size(many: int) -> str:
    """Return a number of bytes with a unit, for people."""
    value, unit = float(many), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return tally(many, "byte") if unit == 0 else f"{value:,.1f} {_UNITS[unit]}"


def _total(files: tuple[FilesetManifestFile, ...]) -> str:
    sizes = [file.size for file in files if file.size is not None]
    told = size(sum(sizes))
    return told if len(sizes) == len(files) else f"at least {told}"


def _file(file: FilesetManifestFile) -> str:
    many = "size unknown" if file.size is None else size(file.size)
    best = next((n for n in ("sha512", "sha256", "sha1", "md5") if getattr(file, n)), None)
    proof = f"to be verified with {best}" if best else "no digest to verify it"
    if file.status == "withheld":
        proof = "withheld"
    return visible(f"  {file.path}: {many}, {proof}")
