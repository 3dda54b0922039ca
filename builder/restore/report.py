"""What a restore came to."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from builder.restore.manifest import ManifestEntry

_SHOWN, _LONGEST = 10, 120
"""Files of which a person is told by name, and characters of each text; the manifest has all."""


@dataclass(slots=True)
class RestoreReport:
    """Counts of files: those that were written, and those that were there already (`kept`).

    `linked` are those of the written that are another name of one that was there, `renamed` by why
    their path is not the natural one, `missing` by code. `removed` were an earlier restore's.
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
    """Of `renamed` and `missing`, the first by name: a URL, and what there is to say."""

    def add(self, entry: ManifestEntry, *, kept: bool = False) -> None:
        """Count a file that is there, or is missing."""
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
        """Return it as JSON has it."""
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
