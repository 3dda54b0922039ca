"""The configuration keys for the archived bytes behind the records."""

import re
from typing import Any

from functions.config import check
from functions.config.key import ConfigKey, flag, number, row

ADDRESS_FIELDS = ("identifier", "timestamp", "url", "file")
"""Fields of an address of an archived copy."""
_FIELD = re.compile(r"\{(.*?)\}")
_ROOT = re.compile(r"(https?://[^/{}]+)?/(?!/)")


def _is_address(template: Any) -> bool:
    if not isinstance(template, str):
        return False
    fields, filled = set(_FIELD.findall(template)), _FIELD.sub("x", template)
    root = _ROOT.match(template)
    return (
        root is not None
        and check.is_url(filled if root[1] else f"http://x{filled}")
        and fields <= {*ADDRESS_FIELDS}
        and not fields.isdisjoint({"identifier", "url"})
    )


CONTENT_KEYS: tuple[ConfigKey, ...] = (
    row(
        "content.serve",
        flag(False),
        "serve archived bytes at `/content`, and captures at `/cdx`, `/timemap` and `/timegate`",
    ),
    ConfigKey(
        "content.archives",
        [],
        check.expect_list(check.is_store),
        "a list of folders and s3://bucket/prefix",
        "places to look for archive files by name, in this order; empty: where they were "
        "ingested. Folders are relative to sheaf.toml",
    ),
    ConfigKey(
        "content.address",
        [],
        check.expect_list(_is_address),
        "a list of http or https URLs, or of paths from /, with {identifier} or {url}, and "
        "optionally {timestamp} or {file}",
        "addresses of archived copies, stated in each record: the first whose fields the record "
        "has. Paths replace the /oai of repository.base_url",
    ),
    row(
        "content.redirect_bytes",
        number(4_000_000, 0, 1 << 50, "bytes"),
        "larger objects that are stored unpacked in a bucket are redirected to a signed URL",
    ),
    row(
        "content.redirect_seconds",
        number(900, 1, 604_800, "seconds"),
        "how long a signed URL is valid",
    ),
    row(
        "content.lines",
        number(10_000, 1, 100_000),
        "lines in one response of `/cdx` and `/timemap`",
    ),
)
