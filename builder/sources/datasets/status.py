"""Statuses of requests and files, one row each.

Each result has one, and each file in its manifest has one. If a file decides the result, the result
has the status of the file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

RESULT, FILE, BOTH = "result", "file", "both"
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Status:
    """A status and its properties. `scope` is result, file or both.

    `hit`: files were archived. `retryable`: a later try may succeed with nothing changed here
    (`may_pass` also counts the files).
    `lists`: the dataset is listed with its metadata all the same. `closes`: the platform does not
    give the files any more, if it gave them. `gone`: it removed the dataset. `alone`: the file was
    asked for in vain, and the others are archived without it.
    """

    name: str
    family: str
    meaning: str
    scope: str = RESULT
    hit: bool = False
    retryable: bool = False
    lists: bool = False
    closes: bool = False
    gone: bool = False
    alone: bool = False


_TABLE = """
success | ok | both hit lists | all files are archived and verified
success-file | ok | hit lists | its file is archived and verified
success-existing | ok | hit lists | all files were archived before
success-partial | ok | hit lists | all available files are archived; others are withheld, \
failed or too large
no-platform-match | request | | no known platform hosts it
skip-url-blocklist | request | | fileset.block names its URL
bad-identifier | request | | it is neither a URL nor a DOI
blocked-address | request | both alone | an address is not public, or its port is not in http.ports
robots-disallowed | request | | the host's robots.txt forbids the landing page
needs-token | request | lists | the platform requires a token to download files
platform-scope | platform | | it is not a single version of a dataset
platform-restricted | platform | lists closes | access to it is restricted
platform-embargoed | platform | lists closes | it is under embargo
platform-gone | platform | closes gone | the platform removed it
platform-404 | platform | | the platform has no such dataset
platform-login-wall | platform | retryable | the response was a login page
platform-bot-wall | platform | retryable | the response was a page that blocks robots
platform-rate-limited | platform | retryable | the platform limits the rate of requests
platform-timeout | platform | retryable | the platform did not answer in time
platform-http-error | platform | retryable | the platform answered with an error
platform-error | platform | | the platform contradicts itself
platform-bad-response | platform | retryable | the platform's answer cannot be parsed
incomplete-manifest | platform | retryable | the platform lists fewer files than it counts
empty-manifest | platform | | it has no files
metadata-only | platform | lists closes | its files are not stored by the platform
too-many-files | limit | | it has more files than fileset.limits.files
too-large-size | limit | | its files exceed fileset.limits.bytes in total
too-large-file | limit | both | a file is larger than fileset.limits.file_bytes
unsafe-path | limit | both | a file's path leads elsewhere, or is too long
over-limit-stream | limit | both alone | more bytes were received than allowed
pending | file | both | not processed yet
exists | file | file hit | it was archived before
verified | file | file hit | it is archived, and its digest is the platform's
unverified | file | file hit | it is archived; the platform declares no digest
error-platform-download | file | both retryable alone | it could not be downloaded
file-404 | file | both alone | the platform lists it but does not have it
file-forbidden | file | both alone | the platform lists it but restricts access to it
truncated | file | both retryable alone | each attempt ended before the file was complete
stalled | file | both retryable alone | its bytes came too slowly or not at all
html-decoy | file | both retryable alone | the response was a page or an error, not the file
mismatch-size | file | both alone | its size is not the platform's
mismatch-md5 | file | both alone | its MD5 is not the platform's
mismatch-sha1 | file | both alone | its SHA-1 is not the platform's
mismatch-sha256 | file | both alone | its SHA-256 is not the platform's
mismatch-sha512 | file | both alone | its SHA-512 is not the platform's
mismatch-crc32 | file | both alone | its CRC-32 is not the bundle's
encoding-ambiguous | file | both alone | \
it has a content coding, and no digest identifies the right bytes
withheld | file | file | the platform lists it but withholds it
skipped | file | file | it is not stored: another file of the dataset failed
bundle-unreadable | bundle | both | the platform's bundle is not a readable zip
bundle-missing-member | bundle | both alone | the bundle lacks a file of the manifest
bundle-extra-member | bundle | file | the bundle has a file that is not in the manifest
bundle-unsafe-member | bundle | both | a file's path in the bundle leads outside of it
bundle-bomb | bundle | both | the unpacked bundle exceeds the limit
error-store-upload | store | both retryable | the store did not accept it
error-store-verify | store | both retryable | the stored bytes differ from the written ones
mismatch-existing | store | both | the archived files were altered; nothing is overwritten
changed-during-ingest | run | retryable | the platform changed it during the download
deadline-exceeded | run | both retryable | it exceeded the time limit
cancelled | run | both retryable | the run was stopped
not-implemented | run | | Sheaf does not support this
internal-error | run | | an internal error of Sheaf
"""
"""Name, family, properties and meaning of each status."""


def _parse_row(line: str) -> Status:
    name, family, flags, meaning = (cell.strip() for cell in line.split("|"))
    scope = next((scope for scope in (FILE, BOTH) if scope in flags.split()), RESULT)
    properties = dict.fromkeys(set(flags.split()) - {scope}, True)
    return Status(name, family, meaning, scope, **properties)


STATUSES: Mapping[str, Status] = {
    status.name: status for status in map(_parse_row, _TABLE.strip().splitlines())
}
FAIL_ALONE = frozenset(status.name for status in STATUSES.values() if status.alone)
"""Statuses of files that were asked for in vain; the others are archived without them."""


def of_dataset(strategy: str, files: Iterable[str | None], *, existing: bool = False) -> str:
    """Return the status of a dataset, of which at least one file is archived.

    `files` are the statuses of all its files. `existing`: none of them was archived just now.
    """
    if not all(of(file or "").hit or file == "bundle-extra-member" for file in files):
        return "success-partial"
    if existing:
        return "success-existing"
    return "success-file" if strategy.endswith("-file") else "success"


def may_pass(name: str, files: Iterable[str | None]) -> bool:
    """Return whether a result is retryable, as it says and as `--retry` selects it.

    `name` is its status, `files` are those of its files. Beside archived files, each file that
    failed is asked for again, whatever it failed by.
    """
    row = of(name)
    return row.retryable or (row.hit and not FAIL_ALONE.isdisjoint(files))


def of(name: str) -> Status:
    """Return the row of a status.

    A status of another version of Sheaf, as old results have, is that of a failure for good.
    """
    return STATUSES.get(name) or Status(name, OTHER, "a status of another version of Sheaf", BOTH)
