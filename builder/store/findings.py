"""Findings on a store, and a table of their codes with the remedy for each."""

from collections.abc import Mapping
from dataclasses import dataclass

DAMAGE = "damage"
NOTE = "note"

_REPLACE = "put it back from a copy; where no later snapshot names it, expire those that do"
_REPAIR = "`sheaf verify --repair` writes it anew from the manifest; or put it back from a copy"
_COPY = "put it back from a copy of the store: nothing of the obi store is ever changed"
_POINTER = "`sheaf verify --repair` writes that into current.json, or write it yourself"
_WITNESS = "`sheaf verify --repair` writes that into snapshots/newest.json, or write it yourself"
_FETCH = "put it back from a copy, or ask for its dataset again with `sheaf fileset`"
_REBUILD = "put the store back from a copy, or publish its archives into a new one"

CODES: Mapping[str, tuple[str, str]] = {
    # code: kind and remedy
    "pointer-missing": (DAMAGE, _POINTER),
    "pointer-damaged": (DAMAGE, _POINTER),
    "pointer-wrong": (DAMAGE, "put current.json back from a copy of the store"),
    "pointer-behind": (DAMAGE, _POINTER),
    "pointer-foreign": (DAMAGE, "put back the pointer of this store, or write that yourself"),
    "witness-missing": (DAMAGE, _WITNESS),
    "witness-damaged": (DAMAGE, _WITNESS),
    "witness-ahead": (
        DAMAGE,
        "put the snapshot back from a copy; or, if you removed it yourself, write that into "
        "snapshots/newest.json",
    ),
    "manifest-missing": (DAMAGE, _REPLACE),
    "manifest-damaged": (DAMAGE, _REPLACE),
    "manifest-wrong": (DAMAGE, _REPLACE),
    "views-missing": (DAMAGE, _REPAIR),
    "views-damaged": (DAMAGE, _REPAIR),
    "leaf-missing": (DAMAGE, _REPLACE),
    "leaf-damaged": (DAMAGE, _REPLACE),
    "leaf-wrong": (DAMAGE, _REPLACE),
    "file-missing": (DAMAGE, _REPLACE),
    "file-size": (DAMAGE, _REPLACE),
    "file-digest": (DAMAGE, _REPLACE),
    "file-unreadable": (DAMAGE, _REPLACE),
    "file-wrong": (DAMAGE, _REPLACE),
    "rows-unsorted": (DAMAGE, _REBUILD),
    "position-wrong": (DAMAGE, _REBUILD),
    "tombstone-full": (DAMAGE, _REBUILD),
    "template-wrong": (DAMAGE, _REBUILD),
    "obi-tables": (DAMAGE, _REBUILD),
    "records-count": (DAMAGE, _REBUILD),
    "set-count": (DAMAGE, _REBUILD),
    "set-range": (DAMAGE, _REBUILD),
    "copy-wrong": (DAMAGE, _REBUILD),
    "copy-missing": (DAMAGE, _REBUILD),
    "lookup-wrong": (DAMAGE, _REBUILD),
    "lookup-missing": (DAMAGE, _REBUILD),
    "url-wrong": (DAMAGE, _REBUILD),
    "url-missing": (DAMAGE, _REBUILD),
    "dead-wrong": (DAMAGE, _REBUILD),
    "dead-missing": (DAMAGE, _REBUILD),
    "revisit-wrong": (DAMAGE, _REBUILD),
    "tie-wrong": (DAMAGE, _REBUILD),
    "tie-missing": (DAMAGE, _REBUILD),
    "intake-damaged": (DAMAGE, "remove that run, and ingest its archives again"),
    "obi-missing": (DAMAGE, _COPY),
    "obi-altered": (DAMAGE, _COPY),
    "obi-key": (DAMAGE, _COPY),
    "obi-log-edited": (DAMAGE, _COPY),
    "obi-documents-edited": (DAMAGE, _COPY),
    "obi-run-edited": (DAMAGE, _COPY),
    "obi-run-removed": (DAMAGE, "put the run back from a copy, all that lies below that place"),
    "fileset-missing": (DAMAGE, _FETCH),
    "fileset-altered": (DAMAGE, f"remove it; then {_FETCH}"),
    "fileset-wrong": (DAMAGE, f"remove its dataset's fileset.json; then {_FETCH}"),
    "pointer-unsettled": (NOTE, "a publish died; `sheaf publish` completes it"),
    "witness-behind": (NOTE, "a publish died; `sheaf publish` completes it"),
    "expiry-unfinished": (NOTE, "an expiry died; `sheaf publish` or `sheaf expire` completes it"),
    "export-unfinished": (NOTE, "an export to this copy goes on or died; run it again"),
    "views-repaired": (NOTE, "there is nothing to do"),
    "pointer-repaired": (NOTE, "there is nothing to do"),
    "witness-repaired": (NOTE, "there is nothing to do"),
    "unchecked": (NOTE, "mend what else was found, then verify again"),
    "orphan": (NOTE, "`sheaf expire` removes it"),
    "intake-unfinished": (NOTE, "an ingest goes on or died; `sheaf expire` removes it in a day"),
    "ingest-unfinished": (
        NOTE,
        "an ingest goes on or was interrupted: give its command again, or remove that folder",
    ),
    "obi-stray": (NOTE, "no reader sees it; find out who put it there"),
    "obi-run-unfinished": (
        NOTE,
        "it goes on or died: give its command again, or end it with `sheaf obi --abandon`",
    ),
    "fileset-stray": (NOTE, "no reader sees it; find out who put it there"),
    "fileset-unfinished": (
        NOTE,
        "a dataset is being fetched, or was interrupted: ask for it again, or remove that",
    ),
    "temporary": (NOTE, "remove it unless a command is writing to the store"),
}
"""All codes of findings."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: its code, the key of the object, and the problem."""

    code: str
    object: str
    problem: str

    @property
    def kind(self) -> str:
        """DAMAGE, or NOTE if it harms no reader."""
        return CODES[self.code][0]

    @property
    def remedy(self) -> str:
        """The text on what to do about it."""
        return CODES[self.code][1]
