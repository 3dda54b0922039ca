"""The configuration keys for RePEc's templates, files behind their URLs, and filesets.

Filesets are datasets hosted by platforms.
"""

from typing import Any

from functions.config import check
from functions.config.key import (
    Field,
    Fields,
    choice,
    flag,
    list_of,
    number,
    optional,
    row,
    seconds,
    table_of,
)
from functions.snapshot import oai_name

PLACE = optional(check.is_place, "an http or https URL without ? and #, s3://bucket/prefix")
BATCH = Fields({"minutes": number(5, 1, 1440, "minutes"), "files": number(5000, 1, 100_000)})

_RULE: dict[str, Field] = {
    "host": Field(None, check.is_text, "a host's name, or a pattern such as *.example.org"),
    "publisher": Field(
        None,
        check.like(r"(?i)repec:[a-z]{3}(:[^:\s]+)?"),
        "RePEc:aaa or RePEc:aaa:ssssss",
    ),
    "restricted": flag(None),
    "exclude": flag(False),
    "seconds": seconds(0, 0, 3600),
}
_EFFECTS = frozenset({"exclude", "seconds"})
_RULES = Fields(_RULE).rules(
    "host, publisher or restricted, and with exclude or seconds",
    lambda rule: (
        ""
        if rule.keys() - _EFFECTS and len(rule.keys() & _EFFECTS) == 1
        else "host, publisher or restricted, and one of exclude and seconds"
    ),
)


GATHER_KEYS: tuple[Field, ...] = (
    BATCH.row(
        "gather.batch",
        "a batch starts no request after this many minutes or files, and is then committed",
    ),
    row("gather.interval_days", number(30, 0, 3650, "days"), "when a file is fetched again"),
    row(
        "gather.retry_days",
        number(1, 0, 3650, "days"),
        "when a file is tried again after a temporary failure; doubles each time, up to "
        "gather.interval_days",
    ),
    row(
        "gather.rules",
        _RULES,
        "files to exclude or to request less often (docs/guide/repec.md, Rules)",
    ),
)


def contains_ascii(encoding: Any) -> bool:
    """Return whether a value is a known encoding that has the bytes of ASCII."""
    try:
        return b"Handle: RePEc:".decode(encoding) == "Handle: RePEc:"
    except (LookupError, TypeError, ValueError):
        return False


REPEC_KEYS: tuple[Field, ...] = (
    row(
        "redif.directory",
        optional(check.is_text, "a folder"),
        "tree of templates that `sheaf ingest` reads if no source is given; relative to sheaf.toml",
    ),
    row(
        "redif.largest",
        number(256, 1, 65_536, "megabytes"),
        "size limit of a ReDIF file; larger files are skipped and reported",
    ),
    row(
        "redif.encodings",
        table_of(
            check.like("[a-z0-9]{3}"),
            contains_ascii,
            "from archives such as aaa to encodings of their bytes such as windows-1251",
        ),
        "encoding of templates that declare none and are not UTF-8, by archive; otherwise "
        "windows-1252",
    ),
    row(
        "redif.origin",
        PLACE,
        "address of the folders of RePEc's archives, stated in each template; empty: no statement",
    ),
    row(
        "redif.identifier_prefix",
        optional(
            lambda v: isinstance(v, str) and oai_name.is_prefix(v),
            "oai: or oai:, a domain name and a colon",
        ),
        "prefix of the handle in a template's identifier; oai: keeps RePEc's own; empty: oai: and "
        "the namespace; do not change it after the first publish",
    ),
)
BACKENDS = ("web", "s3", "archiveorg")


STRATEGY = Fields(
    {
        "backend": Field("auto", lambda v: v in ("auto", *BACKENDS), "auto, web, s3 or archiveorg"),
        "large": choice("s3", "archiveorg"),
        "files": number(20, 1, 10_000),
        "bytes": number(1_000_000_000, 1, 1 << 50, "bytes"),
        "file_bytes": number(128_000_000, 1, 1 << 50, "bytes"),
        "bundle": choice("never", "many", "always"),
        "platform_bundle": flag(False),
        "collection": Field(
            "", check.like(r"([A-Za-z0-9][A-Za-z0-9._-]{0,99})?"), "the name of a collection"
        ),
        "item_prefix": Field(
            "", check.like(r"([A-Za-z0-9][A-Za-z0-9._-]{0,29})?"), "at most 30 of A-Z a-z 0-9 . _ -"
        ),
        "item_names": choice("digest", "sandcrawler"),
    }
)
"""Storage of files. With `backend` auto, `files`, `bytes` and `file_bytes` limit small datasets.

`collection`, `item_prefix` and `item_names` are of new items of archive.org.
"""

LIMITS = Fields(
    {
        "files": number(200, 1, 100_000),
        "bytes": number(64_000_000_000, 1, 1 << 50, "bytes"),
        "file_bytes": number(64_000_000_000, 1, 1 << 50, "bytes"),
    }
)


FILESET_KEYS: tuple[Field, ...] = (
    row(
        "fileset.strategy",
        Field(
            "auto",
            lambda v: v in ("auto", *BACKENDS) or STRATEGY.is_valid(v),
            f"auto, web, s3, archiveorg, or {STRATEGY.expectation}",
            STRATEGY.problem,
            lambda v: STRATEGY.complete({"backend": v} if isinstance(v, str) else v),
        ),
        "where and how files are stored; auto: web (a WARC in the store) for few small files, "
        "else s3 (objects in the store)",
    ),
    LIMITS.row(
        "fileset.limits",
        "limits of a dataset: number of files, bytes of all files, bytes of one file",
    ),
    row(
        "fileset.partial",
        flag(True),
        "archive the other files of a dataset if some are withheld, fail or have no safe path",
    ),
    row(
        "fileset.follow_removals",
        flag(False),
        "delete the records of datasets that their platforms removed; otherwise they say so",
    ),
    row(
        "fileset.check",
        choice("digest", "size"),
        "how files that are already archived are checked: by the digest of all bytes, or by size "
        "only",
    ),
    row(
        "fileset.request_seconds",
        number(86_400, 1, 604_800, "seconds"),
        "time limit for one dataset",
    ),
    row(
        "fileset.block",
        list_of(
            lambda v: isinstance(v, str) and v.startswith(("http://", "https://")), "URL prefixes"
        ),
        "datasets to refuse",
    ),
    row(
        "fileset.tokens",
        table_of(
            check.is_text,
            lambda v: check.is_text(v) and v.isascii(),
            "from host names to tokens",
        ),
        "tokens by host, each sent to its host only, such as for datadryad.org",
    ),
)
