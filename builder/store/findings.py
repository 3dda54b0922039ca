"""Findings on a store, and a table of their codes with the remedy for each."""

from collections.abc import Mapping
from dataclasses import dataclass

DAMAGE = "damage"
NOTE = "note"

_REPLACE = "restore it from a copy; if no later snapshot names it, expire those that do"
_REPAIR = "run `sheaf verify --repair` to rewrite it from the manifest, or restore it from a copy"
_COPY = "restore it from a copy of the store: objects of the obi store never change"
_POINTER = "run `sheaf verify --repair` to write that into current.json, or write it yourself"
_WITNESS = (
    "run `sheaf verify --repair` to write that into snapshots/newest.json, or write it yourself"
)
_LOST = (
    "restore current.json, snapshots/ and records/ from a copy of the store, or build the store "
    "anew from obi/ (docs/operations/operate.md, A lost pointer)"
)
_IDENTITY = "restore store.json from a copy, or run `sheaf publish`, which writes it anew"
_FETCH = "restore it from a copy, or archive its dataset again with `sheaf fileset`"
_WORDS = "run `sheaf publish` with search.words = false, then with true, to make the table anew"
_DUMPS = "remove all of dumps/, then run `sheaf publish` to make the dumps anew"
_TABLES = "remove all of tables/, then run `sheaf publish` to make the tables anew"
_INDEXES = "log/snapshots/ and log/newest.json"
_LOG = "find out who wrote to the store, and restore log/ from a copy"
_REBUILD = "restore the store from a copy, or publish its archives into a new store"
_COMPARED = "verify both stores: restore it in the damaged one, or update the copy"

CODES: Mapping[str, tuple[str, str]] = {
    # code: kind and remedy
    "identity-missing": (DAMAGE, _IDENTITY),
    "identity-damaged": (DAMAGE, _IDENTITY),
    "snapshots-lost": (DAMAGE, _LOST),
    "part-missing": (DAMAGE, "restore it from a copy; what can be derived, `sheaf publish` makes"),
    "pointer-missing": (DAMAGE, _POINTER),
    "pointer-damaged": (DAMAGE, _POINTER),
    "pointer-wrong": (DAMAGE, "restore current.json from a copy of the store"),
    "pointer-behind": (DAMAGE, _POINTER),
    "pointer-foreign": (DAMAGE, "restore the pointer of this store, or write that yourself"),
    "witness-missing": (DAMAGE, _WITNESS),
    "witness-damaged": (DAMAGE, _WITNESS),
    "witness-ahead": (
        DAMAGE,
        "restore the snapshot from a copy; or, if you removed it yourself, write that into "
        "snapshots/newest.json",
    ),
    "manifest-missing": (DAMAGE, _REPLACE),
    "manifest-damaged": (DAMAGE, _REPLACE),
    "manifest-wrong": (DAMAGE, _REPLACE),
    "settled-wrong": (DAMAGE, "write that into it, or restore it from a copy"),
    "settled-missing": (NOTE, _REPAIR),
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
    "figures-wrong": (DAMAGE, _REBUILD),
    "set-range": (DAMAGE, _REBUILD),
    "copy-wrong": (DAMAGE, _REBUILD),
    "copy-missing": (DAMAGE, _REBUILD),
    "lookup-wrong": (DAMAGE, _REBUILD),
    "lookup-missing": (DAMAGE, _REBUILD),
    "url-wrong": (DAMAGE, _REBUILD),
    "url-missing": (DAMAGE, _REBUILD),
    "words-wrong": (DAMAGE, _WORDS),
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
    "obi-run-removed": (DAMAGE, "restore the run, with all objects below this place, from a copy"),
    "obi-publish-edited": (DAMAGE, _COPY),
    "obi-publish-missing": (
        DAMAGE,
        "run `sheaf publish`, which writes the record of the newest change again; restore an "
        "earlier one from a copy of the store",
    ),
    "obi-stray": (DAMAGE, "find out where it came from, then remove it: no run wrote it"),
    "files-table-wrong": (DAMAGE, "remove it: `sheaf gather` makes it again from the logs"),
    "archive-missing": (DAMAGE, "restore it, or name its place in content.archives"),
    "fileset-missing": (DAMAGE, _FETCH),
    "fileset-altered": (DAMAGE, f"remove it; then {_FETCH}"),
    "fileset-wrong": (DAMAGE, f"remove its dataset's fileset.json; then {_FETCH}"),
    "dump-missing": (DAMAGE, _DUMPS),
    "dump-altered": (DAMAGE, _DUMPS),
    "table-missing": (DAMAGE, _TABLES),
    "table-altered": (DAMAGE, _TABLES),
    "table-wrong": (DAMAGE, _TABLES),
    "fixity-damaged": (DAMAGE, "restore it from a copy, or remove it: its reports are lost then"),
    "log-missing": (DAMAGE, "restore log/ from a copy, or leave --key out if nothing was signed"),
    "log-forged": (DAMAGE, f"give the key that signed it, or {_LOG}"),
    "log-altered": (DAMAGE, _LOG),
    "log-truncated": (DAMAGE, _LOG),
    "log-split": (DAMAGE, "ask who holds the key: two histories were signed"),
    "log-mismatch": (DAMAGE, "restore the snapshot from a copy: it is not the one that was signed"),
    "log-ahead": (DAMAGE, "restore the newest snapshots from a copy: the store is an older one"),
    "log-index": (DAMAGE, f"restore {_INDEXES} from a copy; bundles from before stay valid"),
    "log-behind": (NOTE, "run `sheaf publish` with the key to complete the log"),
    "pointer-unsettled": (NOTE, "a publish was interrupted; run `sheaf publish` to complete it"),
    "witness-behind": (NOTE, "a publish was interrupted; run `sheaf publish` to complete it"),
    "expiry-unfinished": (
        NOTE,
        "an expiry was interrupted; run `sheaf publish` or `sheaf expire` to complete it",
    ),
    "purge-unfinished": (NOTE, "a purge was interrupted; run `sheaf publish` to complete it"),
    "export-unfinished": (NOTE, "a copy to this store is running or was interrupted; run it again"),
    "views-repaired": (NOTE, "no action needed"),
    "pointer-repaired": (NOTE, "no action needed"),
    "witness-repaired": (NOTE, "no action needed"),
    "dumps-behind": (NOTE, "a publish was interrupted; run `sheaf publish` to complete its dumps"),
    "tables-behind": (
        NOTE,
        "run `sheaf publish` to complete its tables",
    ),
    "tables-moved": (NOTE, "run `sheaf publish` to write tables for this place"),
    "unchecked": (NOTE, "fix the other findings, then verify again"),
    "unlisted": (
        NOTE,
        "to check leftovers, the obi store and files of datasets too, verify the folder or bucket",
    ),
    "orphan": (NOTE, "`sheaf expire` removes it"),
    "intake-unfinished": (
        NOTE,
        "an ingest is running or was interrupted; `sheaf expire` removes it after a day",
    ),
    "ingest-unfinished": (
        NOTE,
        "an ingest is running or was interrupted: run its command again, or remove that folder",
    ),
    "obi-pack-orphan": (
        NOTE,
        "an interrupted or abandoned run left it; a run that stores the same bytes will use it",
    ),
    "obi-run-unfinished": (
        NOTE,
        "the run is open or was interrupted: run its command again, or end it with `sheaf obi "
        "--abandon`",
    ),
    "comparison-apart": (DAMAGE, "update the copy with `sheaf copy`, or name another one"),
    "comparison-missing": (DAMAGE, _COMPARED),
    "comparison-differs": (DAMAGE, _COMPARED),
    "comparison-split": (
        DAMAGE,
        "keep both, and ask who holds the key: `sheaf verify --checkpoint` with a log/checkpoint "
        "from elsewhere tells which log continues it",
    ),
    "fileset-stray": (NOTE, "no reader uses it; find out where it came from"),
    "fileset-unfinished": (
        NOTE,
        "a dataset is being fetched, or was interrupted: run `sheaf fileset` for it again, or "
        "remove this",
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
