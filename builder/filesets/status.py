"""Statuses of requests and files, one row each.

Each result has one, and each file in its manifest has one. If a file decides the result, the result
has the status of the file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

RESULT, FILE, BOTH = "result", "file", "both"


@dataclass(frozen=True, slots=True)
class Status:
    """A status and its properties. `scope` is result, file or both.

    `hit`: files were archived. `retryable`: a later try may succeed with nothing changed here.
    `lists`: the dataset is listed with its metadata all the same. `gone`: a listed item is deleted.
    """

    name: str
    family: str
    meaning: str
    scope: str = RESULT
    hit: bool = False
    retryable: bool = False
    lists: bool = False
    gone: bool = False


def _table(statuses: Iterable[Status]) -> Mapping[str, Status]:
    return {status.name: status for status in statuses}


STATUSES = _table(
    (
        Status("success", "ok", "all files are archived and verified", BOTH, hit=True, lists=True),
        Status("success-file", "ok", "its one file is archived and verified", hit=True, lists=True),
        Status(
            "success-existing", "ok", "all of it was archived before", hit=True, lists=True
        ),
        Status(
            "success-partial",
            "ok",
            "all files that the platform gives are archived; it withholds others",
            hit=True,
            lists=True,
        ),
        Status("no-platform-match", "request", "no platform that is known hosts it"),
        Status("skip-url-blocklist", "request", "fileset.block names its URL"),
        Status("bad-identifier", "request", "it is neither a URL nor a DOI"),
        Status("blocked-address", "request",
               "an address is not a public one, or its port none of http.ports", BOTH),
        Status("robots-disallowed", "request", "the host's robots.txt forbids the landing page"),
        Status("needs-token", "request", "the platform gives files to those with a token alone",
               lists=True),
        Status("platform-scope", "platform", "it is no dataset of one version"),
        Status("platform-restricted", "platform", "the platform gives it to others only",
               lists=True),
        Status("platform-embargoed", "platform", "it is given from a day on that is to come",
               lists=True),
        Status("platform-gone", "platform", "the platform took it away", gone=True),
        Status("platform-404", "platform", "the platform has no such dataset"),
        Status("platform-login-wall", "platform", "a page to log in came in its place",
               retryable=True),
        Status("platform-bot-wall", "platform", "a page that keeps robots out came in its place",
               retryable=True),
        Status("platform-rate-limited", "platform", "the platform was asked too often",
               retryable=True),
        Status("platform-timeout", "platform", "the platform did not answer in time",
               retryable=True),
        Status("platform-http-error", "platform", "the platform answered with an error",
               retryable=True),
        Status("platform-error", "platform", "the platform contradicts itself"),
        Status("platform-bad-response", "platform", "what the platform answered is not to be read",
               retryable=True),
        Status("incomplete-manifest", "platform", "the platform lists fewer files than it counts",
               retryable=True),
        Status("empty-manifest", "platform", "it has no files"),
        Status("metadata-only", "platform", "its files are not kept by the platform", lists=True),
        Status("too-many-files", "limit", "it has more files than fileset.limits.files"),
        Status("too-large-size", "limit", "its files are larger in all than fileset.limits.bytes"),
        Status("too-large-file", "limit", "a file is larger than fileset.limits.file_bytes", BOTH),
        Status("unsafe-path", "limit", "a file's path leads elsewhere, or cannot be kept", BOTH),
        Status("duplicate-path", "limit", "two files have one path", BOTH),
        Status("over-limit-stream", "limit", "more bytes came than may", BOTH),
        Status("pending", "file", "nothing was done about it yet", BOTH),
        Status("exists", "file", "it was archived before", FILE, hit=True),
        Status("verified", "file", "it is archived, and has the digest that its platform tells",
               FILE, hit=True),
        Status("unverified", "file", "it is archived; its platform tells no digest", FILE,
               hit=True),
        Status("error-platform-download", "file", "it could not be downloaded", BOTH,
               retryable=True),
        Status("file-404", "file", "the platform lists it and has it not", BOTH),
        Status("file-forbidden", "file", "the platform lists it and gives it to others only", BOTH),
        Status("truncated", "file", "the connection ended before all of it had come, each time",
               BOTH, retryable=True),
        Status("stalled", "file", "its bytes came too slowly, or not at all", BOTH, retryable=True),
        Status("html-decoy", "file", "a page came in its place", BOTH, retryable=True),
        Status("mismatch-size", "file", "it has another size than its platform tells", BOTH),
        Status("mismatch-md5", "file", "it has another MD5 than its platform tells", BOTH),
        Status("mismatch-sha1", "file", "it has another SHA-1 than its platform tells", BOTH),
        Status("mismatch-sha256", "file", "it has another SHA-256 than its platform tells", BOTH),
        Status("mismatch-sha512", "file", "it has another SHA-512 than its platform tells", BOTH),
        Status("mismatch-crc32", "file", "it has another CRC-32 than its bundle tells", BOTH),
        Status("encoding-ambiguous", "file",
               "it came in a content coding, and no digest tells which bytes are meant", BOTH),
        Status("withheld", "file", "the platform lists it and does not give it", FILE),
        Status("skipped", "file", "it is not kept: another file of the dataset failed", FILE),
        Status("bundle-unreadable", "bundle", "the platform's bundle is no zip that can be read",
               BOTH),
        Status("bundle-missing-member", "bundle", "the bundle lacks a file of the manifest", BOTH),
        Status("bundle-extra-member", "bundle", "the bundle has a file that the manifest has not",
               FILE),
        Status("bundle-unsafe-member", "bundle", "a file's path in the bundle leads elsewhere",
               BOTH),
        Status("bundle-bomb", "bundle", "the bundle inflates to more than it may", BOTH),
        Status("error-store-upload", "store", "the store did not take it", BOTH, retryable=True),
        Status("error-store-verify", "store", "the store has something else than was written",
               BOTH, retryable=True),
        Status("mismatch-existing", "store",
               "what was archived before was altered; nothing is written over it", BOTH),
        Status("changed-during-ingest", "run", "the platform changed it while it was fetched",
               retryable=True),
        Status("deadline-exceeded", "run", "it took longer than it may", BOTH, retryable=True),
        Status("cancelled", "run", "the run was ended", BOTH, retryable=True),
        Status("not-implemented", "run", "Sheaf does not do this"),
        Status("internal-error", "run", "a fault of Sheaf's own"),
    )
)  # fmt: skip


def of(name: str) -> Status:
    """Return the row of a status. Raises KeyError."""
    return STATUSES[name]
