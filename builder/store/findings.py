"""Findings on a store, and a table of their codes with the remedy for each."""

from collections.abc import Mapping
from dataclasses import dataclass

DAMAGE = "damage"
NOTE = "note"

_DAMAGES = {
    "identity-missing identity-damaged": "restore store.json from a copy, or run `sheaf publish`, "
    "which writes it anew",
    "snapshots-lost": "restore current.json, snapshots/ and records/ from a copy of the store, or "
    "build the store anew from obi/ (docs/operations/operate.md, A lost pointer)",
    "part-missing": "restore it from a copy; what can be derived, `sheaf publish` makes",
    "pointer-missing pointer-damaged pointer-behind": "run `sheaf verify --repair` to write that "
    "into current.json, or write it yourself",
    "pointer-wrong": "restore current.json from a copy of the store",
    "pointer-foreign": "restore the pointer of this store, or write that yourself",
    "witness-missing witness-damaged": "run `sheaf verify --repair` to write that into "
    "snapshots/newest.json, or write it yourself",
    "witness-ahead": "restore the snapshot from a copy; or, if you removed it yourself, write that "
    "into snapshots/newest.json",
    "manifest-missing manifest-damaged manifest-wrong leaf-missing leaf-damaged leaf-wrong "
    "file-missing file-size file-digest file-unreadable": "restore it from a copy; if "
    "no later snapshot names it, expire those that do",
    "settled-wrong": "write that into it, or restore it from a copy",
    "views-missing views-damaged": "run `sheaf verify --repair` to rewrite it from the manifest, "
    "or restore it from a copy",
    "obi-tables": "restore the store from a copy, or publish its archives into a new store",
    "intake-damaged": "remove that run, and ingest its archives again",
    "obi-missing obi-altered obi-log-edited obi-documents-edited obi-run-edited "
    "obi-publish-edited": "restore it from a copy of the store: objects of the obi store never "
    "change",
    "obi-run-removed": "restore the run, with all objects below this place, from a copy",
    "obi-publish-missing": "run `sheaf publish`, which writes the record of the newest change "
    "again; restore an earlier one from a copy of the store",
    "obi-stray": "find out where it came from, then remove it: no run wrote it",
    "files-table-wrong": "remove it: `sheaf gather` makes it again from the logs",
    "archive-missing": "restore it, or name its place in content.archives",
    "fileset-missing": "restore it from a copy, or archive its dataset again with `sheaf fileset`",
    "fileset-altered": "remove it; then restore it from a copy, or archive its dataset again with "
    "`sheaf fileset`",
    "fileset-wrong": "remove its dataset's fileset.json; then restore it from a copy, or archive "
    "its dataset again with `sheaf fileset`",
    "dump-missing dump-altered": "remove all of dumps/, then run `sheaf publish` to make the dumps "
    "anew",
    "site-missing site-altered": "remove all of site/, then run `sheaf publish` to make the site "
    "anew",
    "table-missing table-altered": "remove all of tables/, then run `sheaf publish` to "
    "make the tables anew",
    "fixity-damaged": "restore it from a copy, or remove it: its reports are lost then",
    "log-missing": "restore log/ from a copy, or leave --key out if nothing was signed",
    "log-forged": "give the key that signed it, or find out who wrote to the store, and restore "
    "log/ from a copy",
    "log-altered": "find out who wrote to the store, and restore log/ from a copy",
    "log-truncated": "run `sheaf copy` again if one to this place was interrupted; else find out "
    "who wrote to the store, and restore log/ from a copy",
    "log-split": "ask who holds the key: two histories were signed",
    "log-mismatch": "restore the snapshot from a copy: it is not the one that was signed",
    "log-ahead": "restore the newest snapshots from a copy: the store is an older one",
    "log-index": "restore log/snapshots/ and log/newest.json from a copy; bundles from before stay "
    "valid",
    "comparison-apart": "update the copy with `sheaf copy`, or name another one",
    "comparison-missing comparison-differs": "verify both stores: restore it in the damaged one, "
    "or update the copy",
    "comparison-split": "keep both, and ask who holds the key: `sheaf verify --checkpoint` with a "
    "log/checkpoint from elsewhere tells which log continues it",
}
"""The remedy of each damage, by its codes."""

_NOTES = {
    "settled-missing": "run `sheaf verify --repair` to rewrite it from the manifest, or restore it "
    "from a copy",
    "log-behind": "run `sheaf publish` with the key to complete the log",
    "pointer-unsettled witness-behind": "a publish was interrupted; run `sheaf publish` to "
    "complete it",
    "expiry-unfinished": "an expiry was interrupted; run `sheaf publish` or `sheaf expire` to "
    "complete it",
    "purge-unfinished": "a purge was interrupted; run `sheaf publish` to complete it",
    "export-unfinished": "a copy to this store is running or was interrupted; run it again",
    "views-repaired pointer-repaired witness-repaired": "no action needed",
    "dumps-behind": "a publish was interrupted; run `sheaf publish` to complete its dumps",
    "site-behind": "a publish was interrupted; run `sheaf publish` to complete its site",
    "tables-behind": "run `sheaf publish` to complete its tables",
    "tables-moved": "run `sheaf publish` to write tables for this place",
    "unlisted": "to check leftovers, the obi store and files of datasets too, verify the folder or "
    "bucket",
    "orphan": "`sheaf expire` removes it",
    "intake-unfinished": "an ingest is running or was interrupted; `sheaf expire` removes it after "
    "a day",
    "ingest-unfinished": "an ingest is running or was interrupted: run its command again, or "
    "remove that folder",
    "obi-pack-orphan": "an interrupted or abandoned run left it; a run that stores the same bytes "
    "will use it",
    "obi-run-unfinished": "the run is open or was interrupted: run its command again, or end it "
    "with `sheaf obi --abandon`",
    "fileset-stray": "no reader uses it; find out where it came from",
    "fileset-unfinished": "a dataset is being fetched, or was interrupted: run `sheaf fileset` for "
    "it again, or remove this",
    "temporary": "remove it unless a command is writing to the store",
}
"""The remedy of what harms no reader, by its codes."""

CODES: Mapping[str, tuple[str, str]] = {
    code: (kind, remedy)
    for kind, remedies in ((DAMAGE, _DAMAGES), (NOTE, _NOTES))
    for codes, remedy in remedies.items()
    for code in codes.split()
}
"""Kind and remedy of each code of findings."""


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
