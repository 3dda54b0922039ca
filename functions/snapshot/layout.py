"""The layout of a store: one for a folder and for S3, so that a store can be copied either way.

current.json                      the pointer: which snapshot is in effect
snapshots/newest.json             the witness: the newest snapshot that the pointer ever named
snapshots/<n>/manifest.json       one snapshot
snapshots/<n>/views.sql           the same snapshot as views for plain DuckDB
snapshots/<n>/settled             its instant, once it is known that the pointer named it before
snapshots/leaves/<digest>.json    what a manifest says of up to LEAF_FILES data files
records/<table>/<digest>.parquet  data files, named by their content
intake/<run>/...                  what was ingested and is not published yet
.tmp/...                          what a folder's writers have not finished

The pointer and the witness are the only objects that are ever replaced.
"""

import re
from collections.abc import Iterable

POINTER = "current.json"
RECORDS = "records/"
SNAPSHOTS = "snapshots/"
WITNESS = "snapshots/newest.json"
"""It lies below `snapshots/`, so that copies take it along and roles that read may read it."""
INTAKE = "intake/"
TEMPORARY = ".tmp/"
RUN_SUMMARY = "run.json"

GROUP_ROWS = 4096
"""Rows of a row group: what one page reads. Measured best between 2,000 and 10,000."""
FILE_GROUPS = 32
"""Row groups of a data file: few, because a reader plans over the whole footer."""
SETS_GROUPS = 1
"""Row groups of a file of the table of sets: a publish rewrites those whose sets it touched."""
LEAF_FILES = 64
"""Data files that one leaf of the manifest describes."""
INLINED = 1 << 16
"""Bytes of leaves, about, that a manifest holds itself."""
SERVED = ("sets", "records", "copies", "lookup", "dead", "documents", "urls")
"""Tables that requests are answered from: a row group is read with a footer of its own."""

_DIGEST = re.compile(r"[0-9a-f]{32}")
_NAMED = re.compile(
    r"(?:snapshots/leaves/([0-9a-f]{32})\.json|records/[a-z_]+/([0-9a-f]{32})\.parquet)"
)


def file_groups(table: str) -> int:
    """Return how many row groups a data file of `table` has at most."""
    return SETS_GROUPS if table in ("sets", "documents") else FILE_GROUPS


def manifest_key(snapshot: int) -> str:
    """Return where the manifest of snapshot number `snapshot` lies."""
    return f"snapshots/{snapshot}/manifest.json"


def views_key(snapshot: int) -> str:
    """Return where the SQL views of snapshot number `snapshot` lie."""
    return f"snapshots/{snapshot}/views.sql"


def settled_key(snapshot: int) -> str:
    """Return where it is written down that snapshot number `snapshot` took effect in time."""
    return f"snapshots/{snapshot}/settled"


def snapshot_keys(snapshot: int) -> tuple[str, str, str]:
    """Return the keys of what belongs to that snapshot alone; its manifest is the last to go."""
    return settled_key(snapshot), views_key(snapshot), manifest_key(snapshot)


def snapshot_of(key: str) -> int | None:
    """Return the number of the snapshot that the object belongs to alone, if it does."""
    parts = key.split("/")
    if len(parts) == 3 and parts[0] + "/" == SNAPSHOTS and parts[1].isdecimal():
        number = int(parts[1])
        return number if key in snapshot_keys(number) else None
    return None


def numbers_in(names: Iterable[str]) -> list[int]:
    """Return the numbers of the snapshots that have one of these folders, ascending."""
    parts = (name.split("/") for name in names)
    return sorted(int(p[1]) for p in parts if len(p) == 3 and not p[2] and p[1].isdecimal())


def leaf_key(digest: str) -> str:
    """Return where the leaf whose content has `digest` (32 hexadecimal digits) lies."""
    return f"snapshots/leaves/{_check_digest(digest)}.json"


def data_key(table: str, digest: str) -> str:
    """Return where the data file of `table` whose content has `digest` lies."""
    return f"records/{table}/{_check_digest(digest)}.parquet"


def digest_of(key: str) -> str | None:
    """Return the digest by which the object is named, or None for one that is not."""
    match = _NAMED.fullmatch(key)
    return (match[1] or match[2]) if match else None


def run_prefix(run: str) -> str:
    """Return the prefix of everything that intake run `run` holds."""
    return f"{INTAKE}{run}/"


def _check_digest(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest!r} is not a digest of 32 hexadecimal digits")
    return digest
