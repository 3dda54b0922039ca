"""The configuration keys for RePEc's templates, files behind their URLs, and filesets.

Filesets are datasets hosted by platforms.
"""

import re
from typing import Any

from functions.config import check
from functions.config.key import (
    ConfigKey,
    Field,
    Fields,
    choice,
    flag,
    number,
    optional,
    row,
    seconds,
)
from functions.snapshot import oai_name

PLACE = optional(check.is_place, "an http or https URL without ? and #, s3://bucket/prefix")
BATCH = Fields({"minutes": number(5, 1, 1440, "minutes"), "files": number(5000, 1, 100_000)})

_RULE: dict[str, Field] = {
    "host": Field(None, check.is_text, "a host's name, or a pattern such as *.example.org"),
    "publisher": Field(
        None,
        lambda v: (
            isinstance(v, str) and re.fullmatch(r"(?i)repec:[a-z]{3}(:[^:\s]+)?", v) is not None
        ),
        "RePEc:aaa or RePEc:aaa:ssssss",
    ),
    "restricted": flag(None),
    "exclude": flag(False),
    "seconds": seconds(0, 0, 3600),
}
_EFFECTS = frozenset({"exclude", "seconds"})
RULES_EXPECTED = (
    "a list of tables, each with host, publisher or restricted, and with exclude or seconds"
)


def gather_rules_problem(value: Any) -> tuple[str, Any, str] | None:
    """Return the first wrong part of `gather.rules`, as `Fields.problem` does."""
    if not isinstance(value, list):
        return "", value, RULES_EXPECTED
    for place, rule in enumerate(value):
        where = f"[{place}]"
        if not isinstance(rule, dict):
            return where, rule, "a table"
        for name, given in rule.items():
            if name not in _RULE:
                return f"{where}.{name}", given, f"one of the keys {', '.join(_RULE)}"
            if not _RULE[name].test(given):
                return f"{where}.{name}", given, _RULE[name].expected
        if not (rule.keys() - _EFFECTS and len(rule.keys() & _EFFECTS) == 1):
            return where, rule, "host, publisher or restricted, and one of exclude and seconds"
    return None


GATHER_KEYS: tuple[ConfigKey, ...] = (
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
    ConfigKey(
        "gather.rules",
        [],
        lambda v: gather_rules_problem(v) is None,
        RULES_EXPECTED,
        "files to exclude or to request less often (docs/guide/repec.md, Rules)",
        gather_rules_problem,
    ),
    row(
        "gather.pdf_text",
        flag(False),
        "also record a digest of each PDF's text; needs `pip install sheaf-archive[pdf]`",
    ),
)


def contains_ascii(encoding: Any) -> bool:
    """Return whether a value is a known encoding that has the bytes of ASCII."""
    try:
        return b"Handle: RePEc:".decode(encoding) == "Handle: RePEc:"
    except (LookupError, TypeError, ValueError):
        return False


REPEC_KEYS: tuple[ConfigKey, ...] = (
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
    ConfigKey(
        "redif.encodings",
        {},
        check.expect_table(re.compile("[a-z0-9]{3}").fullmatch, contains_ascii),
        "a table from archives such as aaa to encodings of their bytes such as windows-1251",
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


_ITEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_item_name(given: object, most: int) -> bool:
    """Return whether the value is empty or may begin the name of an item, of `most` letters."""
    if not isinstance(given, str):
        return False
    return given == "" or (len(given) <= most and _ITEM.fullmatch(given) is not None)


STRATEGY = Fields(
    {
        "backend": Field("auto", lambda v: v in ("auto", *BACKENDS), "auto, web, s3 or archiveorg"),
        "large": choice("s3", "archiveorg"),
        "files": number(20, 1, 10_000),
        "bytes": number(1_000_000_000, 1, 1 << 50, "bytes"),
        "file_bytes": number(128_000_000, 1, 1 << 50, "bytes"),
        "bundle": choice("never", "many", "always"),
        "platform_bundle": flag(False),
        "collection": Field("", lambda v: is_item_name(v, 100), "the name of a collection"),
        "item_prefix": Field("", lambda v: is_item_name(v, 30), "at most 30 of A-Z a-z 0-9 . _ -"),
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


def is_strategy(given: object) -> bool:
    """Return whether the value is auto, the name of a backend, or a table of STRATEGY."""
    return given in ("auto", *BACKENDS) or STRATEGY.is_valid(given)


def strategy(given: Any) -> dict[str, Any]:
    """Return the complete table for a value of `fileset.strategy`."""
    return STRATEGY.complete({"backend": given} if isinstance(given, str) else given)


FILESET_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "fileset.strategy",
        "auto",
        is_strategy,
        f"auto, web, s3, archiveorg, or {STRATEGY.expectation}",
        "where and how files are stored; auto: web (a WARC in the store) for few small files, "
        "else s3 (objects in the store)",
        STRATEGY.problem,
        strategy,
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
    ConfigKey(
        "fileset.block",
        [],
        check.expect_list(lambda v: isinstance(v, str) and v.startswith(("http://", "https://"))),
        "a list of URL prefixes",
        "datasets to refuse",
    ),
    ConfigKey(
        "fileset.tokens",
        {},
        check.expect_table(check.is_text, lambda v: check.is_text(v) and v.isascii()),
        "a table from host names to tokens",
        "tokens by host, each sent to its host only, such as for datadryad.org",
    ),
)
