"""Choice of a strategy, and limits on datasets. Pure functions of the manifest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from builder.http.settings import Settings
from builder.sources.datasets.item import LEFT_OUT, FilesetManifestFile, FilesetPlatformItem
from builder.sources.datasets.protocols import FilesetError
from builder.sources.datasets.strategies.paths import make_paths_safe

_OBJECTS = "each file as an object below `filesets/`"
_BUNDLE = "one uncompressed zip below `filesets/`; each member is one range read"
_WARC = "the exchanges with the platform in one WARC below `warcs/`, with redirects and requests"
_ITEM = "an item at archive.org, by its S3 interface (keys `IA_ACCESS_KEY`, `IA_SECRET_KEY`)"
STRATEGIES: Mapping[str, str] = {
    f"{backend}-{entity}": text
    for backend, files, bundle in (
        ("s3", _OBJECTS, _BUNDLE),
        ("web", _WARC, _WARC),
        ("archiveorg", _ITEM, _ITEM),
    )
    for entity, text in (("file", files), ("fileset", files), ("fileset-bundled", bundle))
}
"""What each strategy stores, as the documentation says it."""
ARCHIVEORG = "archiveorg"
"""Name of the platform that preserves its files itself."""
TOO_LARGE = "too-large-file"


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """A strategy, one of STRATEGIES, and the reason for it in one line."""

    strategy: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Tally:
    """Number of files, their total and largest bytes, and how many sizes are unknown."""

    files: int
    bytes: int
    largest: int
    unknown: int

    def __str__(self) -> str:
        if self.files == 1:
            return "1 file of unknown size" if self.unknown else f"1 file of {self.bytes:,} bytes"
        text = f"{self.files} files with {self.bytes:,} bytes, the largest has {self.largest:,}"
        return f"{text}, {self.unknown} of unknown size" if self.unknown else text


def apply_limits(item: FilesetPlatformItem, settings: Settings) -> FilesetPlatformItem:
    """Return a dataset within the limits, with its paths made safe.

    Files of unknown size count as empty here; the download counts their bytes. Raises
    FilesetError: platform-restricted (files are withheld, and there are no others or
    fileset.partial forbids a part), unsafe-path and too-large-file (by the same rule),
    empty-manifest, too-many-files, too-large-size.
    """
    files, withheld = item.files, item.withheld
    if withheld and (not files or not settings["fileset.partial"]):
        all_ = len(files) + len(withheld)
        detail = f"the platform withholds {len(withheld)} of {all_} files"
        raise FilesetError("platform-restricted", detail)
    if not files:
        raise FilesetError("empty-manifest", "it lists no files")
    tally = _tally(files)
    limits: Mapping[str, int] = settings["fileset.limits"]
    most, bytes_, largest = limits["files"], limits["bytes"], limits["file_bytes"]
    if tally.files > most:
        detail = f"{tally.files:,} files, and fileset.limits.files is {most:,}"
        raise FilesetError("too-many-files", detail)
    if tally.largest > largest:
        worst = max(files, key=lambda file: file.size or 0).path
        manifest = tuple(
            replace(file, status=TOO_LARGE)
            if file.status not in LEFT_OUT and (file.size or 0) > largest
            else file
            for file in item.manifest or ()
        )
        item = replace(item, manifest=manifest)
        if not (item.files and settings["fileset.partial"]):
            detail = (
                f"{worst}: {tally.largest:,} bytes, and fileset.limits.file_bytes is {largest:,}"
            )
            raise FilesetError(TOO_LARGE, detail, manifest=item.manifest or ())
        tally = _tally(item.files)
    if tally.bytes > bytes_:
        detail = f"{tally.bytes:,} bytes, and fileset.limits.bytes is {bytes_:,}"
        raise FilesetError("too-large-size", detail)
    safe = make_paths_safe(item.manifest or (), partial=settings["fileset.partial"])
    return replace(item, manifest=safe)


def choose(
    files: Sequence[FilesetManifestFile],
    platform: str,
    settings: Settings,
    *,
    bundle_url: str | None = None,
) -> StrategyChoice:
    """Return the strategy for one or more files that a platform gives.

    `bundle_url` is the platform's zip of them, if it has one. `web-fileset-bundled` requires it: a
    WARC stores what a server sent.
    """
    tally, strategy = _tally(files), settings["fileset.strategy"]
    backend, why = _backend(tally, platform, strategy)
    if tally.files == 1:
        return StrategyChoice(f"{backend}-file", why)
    bundle = strategy["bundle"]
    many = tally.files > strategy["files"]
    if bundle == "never" or (bundle == "many" and not many):
        return StrategyChoice(f"{backend}-fileset", why)
    why = f"{why}; fileset.strategy.bundle is {bundle}"
    if backend != "web" or (
        bundle_url and (strategy["platform_bundle"] or strategy["backend"] == "web")
    ):
        return StrategyChoice(f"{backend}-fileset-bundled", why)
    none = "the platform's own zip is not requested" if bundle_url else "the platform offers no zip"
    if strategy["backend"] == "web":
        return StrategyChoice("web-fileset", f"{why}, but {none}")
    return StrategyChoice(f"{strategy['large']}-fileset-bundled", f"{why}, and {none}")


def _backend(tally: _Tally, platform: str, strategy: Mapping[str, Any]) -> tuple[str, str]:
    """Return the backend for the files, and the reason."""
    backend: str = strategy["backend"]
    if backend != "auto":
        return backend, f"{tally}; fileset.strategy is {backend}"
    if platform == ARCHIVEORG:
        return ARCHIVEORG, f"{tally}; archive.org already has them"
    large: str = strategy["large"]
    count, total, most = strategy["files"], strategy["bytes"], strategy["file_bytes"]
    for is_so, reason in (
        (tally.files > count, f"more than {count:,} (fileset.strategy.files)"),
        (tally.largest > most, f"one of more than {most:,} bytes (fileset.strategy.file_bytes)"),
        (tally.bytes > total, f"more than {total:,} bytes (fileset.strategy.bytes)"),
        (tally.unknown > 0, "they may be large"),
    ):
        if is_so:
            return large, f"{tally}: {reason}; fileset.strategy.large is {large}"
    return "web", f"{tally}: few and small"


def _tally(files: Sequence[FilesetManifestFile]) -> _Tally:
    sizes = [file.size for file in files if file.size is not None]
    return _Tally(len(files), sum(sizes), max(sizes, default=0), len(files) - len(sizes))
