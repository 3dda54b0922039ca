"""Report of a restore."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from builder.restore.manifest import ManifestEntry

_SHOWN, _LONGEST = 10, 120
"""Maximum number of files that are named, and of characters of each text; the manifest has all."""


@dataclass(slots=True)
class RestoreReport:
    """Counts of files: those written, and those that existed before (`kept`).

    `linked` counts written files that are links to existing ones. `renamed` counts files by the
    reason why their path is not the natural one, `missing` by code. `removed` counts files of an
    earlier restore that were deleted.
    """

    restored: int = 0
    kept: int = 0
    linked: int = 0
    converted: int = 0
    removed: int = 0
    redirects: int = 0
    bytes: int = 0
    renamed: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    told: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """The first of `renamed` and `missing`: the URL, and the details."""

    def add(self, entry: ManifestEntry, *, kept: bool = False) -> None:
        """Count a file that exists or is missing."""
        if entry.missing:
            self.missing[entry.missing] += 1
            self._tell("missing", entry.url, f"{entry.missing}: {entry.detail}")
            return
        self.kept += kept
        self.restored += not kept
        self.converted += bool(entry.converted)
        self.bytes += entry.size or 0
        if entry.renamed:
            self.renamed[entry.renamed] += 1
            self._tell("renamed", entry.url, f"{entry.renamed}: {entry.path}")

    def _tell(self, what: str, url: str, text: str) -> None:
        some = self.told.setdefault(what, [])
        if len(some) < _SHOWN:
            some.append((_short(url), _short(text)))

    def document(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        return {
            "restored": self.restored,
            "kept": self.kept,
            "linked": self.linked,
            "converted": self.converted,
            "removed": self.removed,
            "redirects": self.redirects,
            "bytes": self.bytes,
            "renamed": dict(sorted(self.renamed.items())),
            "missing": dict(sorted(self.missing.items())),
        }


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 30]}...{text[-27:]}"
