"""The layout of a store, the same in a folder and in S3, so that it can be copied.

current.json                      the pointer: which snapshot is in effect
store.json                        the identity: that this is a store, and what must be in it
snapshots/newest.json             the witness: the newest snapshot that the pointer ever named
snapshots/<n>/manifest.json       one snapshot
snapshots/<n>/views.sql           the same snapshot as views for plain DuckDB
snapshots/<n>/settled             its instant, once known that the pointer named it earlier
snapshots/leaves/<digest>.json    descriptions of up to LEAF_FILES data files
records/<table>/<digest>.parquet  data files, named by their content
tables/<table>/metadata/...       the data files as tables of Iceberg
site/...                          all answers of OAI-PMH as files
fixity.jsonl                      reports of checks
intake/<run>/...                  ingested rows that are not published yet
replay/sw.js                      ReplayWeb.page, where it is installed; no snapshot names it
.tmp/...                          unfinished writes of a folder

Of a snapshot, only the pointer and the witness are ever replaced. The address of a store in
S3 is s3://bucket/prefix. At an https:// address, a store can only be read.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

POINTER = "current.json"
IDENTITY = "store.json"
RECORDS = "records/"
SNAPSHOTS = "snapshots/"
WITNESS = "snapshots/newest.json"
"""It is below `snapshots/`, so that copies include it and roles that only read can read it."""
TABLES = "tables/"
SITE = "site/"
"""Prefix of the files that answer OAI-PMH without a server (builder.outputs.site)."""
SITE_ROUTER = f"{SITE}router.json"
"""What a router of them reads; it is written last."""
INTAKE = "intake/"
PURGES = "purges/"
"""Prefix of the objects that name the items of unfinished purges."""
REPLAY = "replay/"
REPLAY_FILE = "replay/sw.js"
"""What replays with scripts: no part of the archive, so not copied, verified or expired."""
TEMPORARY = ".tmp/"
RUN_SUMMARY = "run.json"
RUN_PUBLISHED = "run.published"
"""The mark of a run that is published and being removed."""
PLAN = "plan.json"
"""The plan of a run that many processes write (builder.sources.webarchives.ingest.plan)."""

GROUP_ROWS = 4096
"""Rows of a row group, which one page reads. Between 2,000 and 10,000, this measured best."""
WORDS = "words"
"""The table of words, whose row groups are large: their rows are short, and their leaves fit."""
WORD_GROUP_ROWS = 131_072
"""Rows of a row group of words."""
SINGLES = "singles"
"""The table of versions one by one, whose row groups are small: a look-up decodes a whole one."""
SINGLE_GROUP_ROWS = 512
"""Rows of a row group of single versions."""
SINGLE_FILE_GROUPS = 256
"""Row groups of a data file of single versions, so that it has about as many rows as others."""
SINGLE_BYTES = 8192
"""Bytes of the longest text of a version in that table; longer ones are read from the records."""
PLAIN = frozenset({"lookup", "dead", "urls", SINGLES})
"""Tables that look-ups read without DuckDB (functions.store.plain_columns)."""
TIES = frozenset({"originals", "revisits"})
"""Tables of short rows that only a publish reads: four times as many are in a row group."""
FILE_GROUPS = 32
"""Row groups of a data file: few, because a reader's planning covers the whole footer."""
WORD_FILE_GROUPS = 8
"""Row groups of a data file of words, which is in memory while it is written."""
SETS_GROUPS = 1
"""Row groups of a file of the table of sets: a publish rewrites the groups of changed sets."""
COUNT_GROUPS = 8
"""Row groups of a file of which a publish reads or rewrites few: hosts, domains, types and TIES."""
LEAF_FILES = 64
"""Data files in one leaf of the manifest."""
INLINED = 3 << 16
"""Approximate number of bytes of leaves that a manifest itself holds."""
SERVED = (
    "figures",
    "publishes",
    "sets",
    "origin_sets",
    "records",
    "copies",
    "lookup",
    SINGLES,
    "dead",
    "documents",
    "urls",
    WORDS,
)
"""Tables that requests read: their leaves are inlined in the manifest, as long as they fit."""

_DIGEST = re.compile(r"[0-9a-f]{32}")
_CONTENT_KEY = re.compile(
    r"(?:snapshots/leaves/([0-9a-f]{32})\.json|records/[a-z_]+/([0-9a-f]{32})\.parquet)"
)


def group_rows(table: str) -> int:
    """Return the maximum number of rows in a row group of `table`."""
    own = {WORDS: WORD_GROUP_ROWS, SINGLES: SINGLE_GROUP_ROWS}
    return own.get(table, 4 * GROUP_ROWS if table in TIES else GROUP_ROWS)


def file_groups(table: str) -> int:
    """Return the maximum number of row groups in a data file of `table`."""
    own = {WORDS: WORD_FILE_GROUPS, SINGLES: SINGLE_FILE_GROUPS}
    own |= dict.fromkeys(("sets", "documents"), SETS_GROUPS)
    own |= dict.fromkeys((*TIES, "hosts", "domains", "media_types"), COUNT_GROUPS)
    return own.get(table, FILE_GROUPS)


def manifest_key(snapshot: int) -> str:
    """Return the key of the manifest of snapshot number `snapshot`."""
    return f"snapshots/{snapshot}/manifest.json"


def views_key(snapshot: int) -> str:
    """Return the key of the SQL views of snapshot number `snapshot`."""
    return f"snapshots/{snapshot}/views.sql"


def settled_key(snapshot: int) -> str:
    """Return the key of the note that snapshot number `snapshot` took effect in time."""
    return f"snapshots/{snapshot}/settled"


def snapshot_keys(snapshot: int) -> tuple[str, ...]:
    """Return the keys that belong to one snapshot alone; its manifest is removed last."""
    return settled_key(snapshot), views_key(snapshot), manifest_key(snapshot)


def snapshot_of(key: str) -> int | None:
    """Return the number of the snapshot that `key` belongs to alone, or None."""
    parts = key.split("/")
    if len(parts) == 3 and parts[0] + "/" == SNAPSHOTS and parts[1].isdecimal():
        number = int(parts[1])
        return number if key in snapshot_keys(number) else None
    return None


def numbers_in(names: Iterable[str]) -> list[int]:
    """Return the snapshot numbers in these folder names, ascending."""
    parts = (name.split("/") for name in names)
    return sorted(int(p[1]) for p in parts if len(p) == 3 and not p[2] and p[1].isdecimal())


def leaf_key(digest: str) -> str:
    """Return the key of the leaf whose content has `digest` (32 hexadecimal digits)."""
    return f"snapshots/leaves/{_check_digest(digest)}.json"


def data_key(table: str, digest: str) -> str:
    """Return the key of the data file of `table` whose content has `digest`."""
    return f"records/{table}/{_check_digest(digest)}.parquet"


def digest_of(key: str) -> str | None:
    """Return the digest in the object's name, or None without one."""
    match = _CONTENT_KEY.fullmatch(key)
    return (match[1] or match[2]) if match else None


def run_prefix(run: str) -> str:
    """Return the prefix of all objects of intake run `run`."""
    return f"{INTAKE}{run}/"


def _check_digest(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest!r} is not a digest of 32 hexadecimal digits")
    return digest


S3_SCHEME = "s3://"
WEB_SCHEMES = ("https://", "http://")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A bucket and the prefix of every key in it. The prefix is empty, or parts joined by `/`."""

    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return S3_SCHEME + "/".join(filter(None, (self.bucket, self.prefix)))

    def key(self, key: str) -> str:
        """Return the bucket's key for a store's key. Raises ValueError if the key is invalid."""
        if not is_key(key):
            raise ValueError(f"{key!r} is not a key of a store")
        return f"{self.prefix}/{key}" if self.prefix else key


def is_key(key: str) -> bool:
    """Return whether both a folder and a bucket can hold `key`."""
    parts = key.split("/")
    return key.isprintable() and all(parts) and not {".", ".."} & set(parts)


def parse_address(text: str) -> StoreAddress:
    """Parse an address. Raises ValueError with the reason.

    Slashes at the end are ignored. A query string is refused, because S3 addresses have no query.
    Text that may contain a secret is also refused, and the error does not repeat it.
    """
    if not text.startswith(S3_SCHEME):
        scheme, separator, _ = text.partition("://")
        other = f", not {scheme}://" if separator and scheme.isalnum() else ""
        raise ValueError(f"expected s3://bucket/prefix{other}")
    bucket, _, prefix = text.removeprefix(S3_SCHEME).partition("/")
    if "@" in bucket:
        raise ValueError("expected s3://bucket/prefix, without credentials")
    if "?" in text or "#" in text:
        raise ValueError("expected s3://bucket/prefix, without ? and #")
    if not _BUCKET.fullmatch(bucket):
        raise ValueError(f"{bucket!r} is not a bucket name, expected s3://bucket/prefix")
    prefix = prefix.rstrip("/")
    if prefix and not is_key(prefix):
        raise ValueError(f"{prefix!r} is not a prefix: it has an empty part, . or ..")
    return StoreAddress(bucket, prefix)


def is_address(text: str) -> bool:
    """Return whether `text` is the address of a store in S3."""
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class WebAddress:
    """The URL of a store's files on a web server, without `/` at the end; it is only read."""

    url: str

    def __str__(self) -> str:
        return self.url

    def key(self, key: str) -> str:
        """Return the key. Raises ValueError if it is invalid."""
        if not is_key(key):
            raise ValueError(f"{key!r} is not a key of a store")
        return key


def parse_web(text: str) -> WebAddress:
    """Parse an http or https URL. Raises ValueError with the reason, which repeats no secret.

    http is for this machine only: on the way, anyone could change a snapshot.
    """
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port  # an invalid port raises ValueError
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.username is not None:
        raise ValueError("expected https://host/path, without credentials")
    if "?" in text or "#" in text:
        raise ValueError("expected https://host/path, without ? and #")
    path = parts.path.strip("/")
    clean = text.isascii() and text.isprintable() and " " not in text
    if not (host and clean and (not path or is_key(path))):
        raise ValueError("expected https://host/path")
    if parts.scheme != "https" and not _is_local(host):
        raise ValueError("expected https://; http:// is for servers on this machine")
    return WebAddress(text.rstrip("/"))


def is_web(text: str) -> bool:
    """Return whether `text` is the address of a store on a web server."""
    try:
        return text.startswith(WEB_SCHEMES) and parse_web(text) is not None
    except ValueError:
        return False


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
