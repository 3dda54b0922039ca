"""Statuses of requests and files, one row each.

Each result has one, and each file in its manifest has one. If a file decides the result, the result
has the status of the file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from builder.sources.datasets.item import FAIL_ALONE

RESULT, FILE, BOTH = "result", "file", "both"
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Status:
    """A status and its properties. `scope` is result, file or both.

    `hit`: files were archived. `retryable`: a later try may succeed with nothing changed here
    (`may_pass` also counts the files).
    `lists`: the dataset is listed with its metadata all the same. `closes`: the platform does not
    give the files any more, if it gave them. `gone`: it removed the dataset.
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


STATUSES: Mapping[str, Status] = {
    status.name: status
    for status in (
        Status("success", "ok", "all files are archived and verified", BOTH, hit=True, lists=True),
        Status("success-file", "ok", "its file is archived and verified", hit=True, lists=True),
        Status("success-existing", "ok", "all files were archived before", hit=True, lists=True),
        Status(
            "success-partial",
            "ok",
            "all available files are archived; others are withheld, failed or too large",
            hit=True,
            lists=True,
        ),
        Status("no-platform-match", "request", "no known platform hosts it"),
        Status("skip-url-blocklist", "request", "fileset.block names its URL"),
        Status("bad-identifier", "request", "it is neither a URL nor a DOI"),
        Status(
            "blocked-address",
            "request",
            "an address is not public, or its port is not in http.ports",
            BOTH,
        ),
        Status("robots-disallowed", "request", "the host's robots.txt forbids the landing page"),
        Status(
            "needs-token", "request", "the platform requires a token to download files", lists=True
        ),
        Status("platform-scope", "platform", "it is not a single version of a dataset"),
        Status(
            "platform-restricted", "platform", "access to it is restricted", lists=True, closes=True
        ),
        Status("platform-embargoed", "platform", "it is under embargo", lists=True, closes=True),
        Status("platform-gone", "platform", "the platform removed it", closes=True, gone=True),
        Status("platform-404", "platform", "the platform has no such dataset"),
        Status("platform-login-wall", "platform", "the response was a login page", retryable=True),
        Status(
            "platform-bot-wall",
            "platform",
            "the response was a page that blocks robots",
            retryable=True,
        ),
        Status(
            "platform-rate-limited",
            "platform",
            "the platform limits the rate of requests",
            retryable=True,
        ),
        Status(
            "platform-timeout", "platform", "the platform did not answer in time", retryable=True
        ),
        Status(
            "platform-http-error", "platform", "the platform answered with an error", retryable=True
        ),
        Status("platform-error", "platform", "the platform contradicts itself"),
        Status(
            "platform-bad-response",
            "platform",
            "the platform's answer cannot be parsed",
            retryable=True,
        ),
        Status(
            "incomplete-manifest",
            "platform",
            "the platform lists fewer files than it counts",
            retryable=True,
        ),
        Status("empty-manifest", "platform", "it has no files"),
        Status(
            "metadata-only",
            "platform",
            "its files are not stored by the platform",
            lists=True,
            closes=True,
        ),
        Status("too-many-files", "limit", "it has more files than fileset.limits.files"),
        Status("too-large-size", "limit", "its files exceed fileset.limits.bytes in total"),
        Status("too-large-file", "limit", "a file is larger than fileset.limits.file_bytes", BOTH),
        Status("unsafe-path", "limit", "a file's path leads elsewhere, or is too long", BOTH),
        Status("over-limit-stream", "limit", "more bytes were received than allowed", BOTH),
        Status("pending", "file", "not processed yet", BOTH),
        Status("exists", "file", "it was archived before", FILE, hit=True),
        Status(
            "verified", "file", "it is archived, and its digest is the platform's", FILE, hit=True
        ),
        Status(
            "unverified", "file", "it is archived; the platform declares no digest", FILE, hit=True
        ),
        Status(
            "error-platform-download", "file", "it could not be downloaded", BOTH, retryable=True
        ),
        Status("file-404", "file", "the platform lists it but does not have it", BOTH),
        Status("file-forbidden", "file", "the platform lists it but restricts access to it", BOTH),
        Status(
            "truncated",
            "file",
            "each attempt ended before the file was complete",
            BOTH,
            retryable=True,
        ),
        Status("stalled", "file", "its bytes came too slowly or not at all", BOTH, retryable=True),
        Status(
            "html-decoy",
            "file",
            "the response was a page or an error, not the file",
            BOTH,
            retryable=True,
        ),
        Status("mismatch-size", "file", "its size is not the platform's", BOTH),
        Status("mismatch-md5", "file", "its MD5 is not the platform's", BOTH),
        Status("mismatch-sha1", "file", "its SHA-1 is not the platform's", BOTH),
        Status("mismatch-sha256", "file", "its SHA-256 is not the platform's", BOTH),
        Status("mismatch-sha512", "file", "its SHA-512 is not the platform's", BOTH),
        Status("mismatch-crc32", "file", "its CRC-32 is not the bundle's", BOTH),
        Status(
            "encoding-ambiguous",
            "file",
            "it has a content coding, and no digest identifies the right bytes",
            BOTH,
        ),
        Status("withheld", "file", "the platform lists it but withholds it", FILE),
        Status("skipped", "file", "it is not stored: another file of the dataset failed", FILE),
        Status("bundle-unreadable", "bundle", "the platform's bundle is not a readable zip", BOTH),
        Status("bundle-missing-member", "bundle", "the bundle lacks a file of the manifest", BOTH),
        Status(
            "bundle-extra-member",
            "bundle",
            "the bundle has a file that is not in the manifest",
            FILE,
        ),
        Status(
            "bundle-unsafe-member",
            "bundle",
            "a file's path in the bundle leads outside of it",
            BOTH,
        ),
        Status("bundle-bomb", "bundle", "the unpacked bundle exceeds the limit", BOTH),
        Status("error-store-upload", "store", "the store did not accept it", BOTH, retryable=True),
        Status(
            "error-store-verify",
            "store",
            "the stored bytes differ from the written ones",
            BOTH,
            retryable=True,
        ),
        Status(
            "mismatch-existing",
            "store",
            "the archived files were altered; nothing is overwritten",
            BOTH,
        ),
        Status(
            "changed-during-ingest",
            "run",
            "the platform changed it during the download",
            retryable=True,
        ),
        Status("deadline-exceeded", "run", "it exceeded the time limit", BOTH, retryable=True),
        Status("cancelled", "run", "the run was stopped", BOTH, retryable=True),
        Status("not-implemented", "run", "Sheaf does not support this"),
        Status("internal-error", "run", "an internal error of Sheaf"),
    )
}


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
