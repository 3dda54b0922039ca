"""Log rows from the results of a run: what the results mean for its files.

The rows depend only on the results and on the state before the run. They are built after all
fetching, so the order of responses has no influence.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from builder.http.errors import OUTCOMES, FetchError
from builder.obi import key
from builder.obi.content import (
    APPEARANCE,
    CHANGE,
    DELETION,
    FILE,
    FailureRow,
    Incidence,
    Redirect,
    Row,
    SeenRow,
    Version,
)
from builder.sources.fulltexts.results import Fetched, FileContent, Final, Hop, Unchanged

LANDING, SOFT_404 = "landing-page", "soft-404"
"""Flags of a version: an HTML page, and a page in place of a PDF."""
LOST_RUNS, LOST_SECONDS = 3, 14 * 86_400
"""A file is lost when its server was unreachable in this many runs, over this many seconds."""

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_MARKS = (b"<!doctype html", b"<html")
_PDF = b"%PDF-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What earlier runs know of a URL.

    `key` and `digest` are those of the newest bytes, None if there never were any. The server was
    unreachable `unreached` times in a row, first at `since`. The URL last led to `target`, with
    `status`; `redirect` is the key of that record.
    """

    key: str | None = None
    digest: str | None = None
    lost: bool = False
    etag: str | None = None
    last_modified: str | None = None
    unreached: int = 0
    since: int | None = None
    target: str | None = None
    status: int | None = None
    redirect: str | None = None

    @property
    def present(self) -> bool:
        """True if the store has bytes of the URL, and it is not lost."""
        return self.key is not None and not self.lost


@dataclass(slots=True)
class IncidenceRules:
    """Builds the log rows of the run `tist`.

    `pdf` returns whether a URL should be a PDF. `redirect` records a hop with the key of its bytes,
    and returns the key of the record.
    """

    tist: int
    before: Callable[[str], Before]
    pdf: Callable[[str], bool]
    redirect: Callable[[Hop, str | None], str]

    def rows(self, outcomes: Iterable[Fetched]) -> list[Row]:
        """Return the rows of all results, sorted; each URL was requested once."""
        ordered = sorted(outcomes, key=lambda fetched: fetched.url)
        askers: dict[str, list[Fetched]] = {}
        for fetched in ordered:
            askers.setdefault(fetched.last, []).append(fetched)
        rows: list[Row] = []
        keys: dict[str, str | None] = {}
        failed: dict[str, FetchError] = {}
        for last in sorted(askers):
            final = askers[last][0].final
            if isinstance(final, FetchError) and OUTCOMES[final.code].chain:
                keys[last] = None  # a fault of redirects concerns each URL that led here: below
                continue
            if isinstance(final, FetchError):
                failed[last] = final
            as_pdf = any(map(self.pdf, {last, *(f.url for f in askers[last])}))
            new_rows = list(self._final(last, final, as_pdf))
            rows += new_rows
            keys[last] = _where(new_rows, self.before(last))
        for fetched in ordered:
            if isinstance(fetched.final, FetchError) and fetched.url not in failed:
                failed[fetched.url] = fetched.final
                rows += self._failure(fetched.url, fetched.final)
        rows += self._hops(ordered, keys)
        return sorted(rows, key=_place)

    def _hops(self, ordered: Iterable[Fetched], keys: Mapping[str, str | None]) -> Iterator[Row]:
        hops: dict[str, tuple[Hop, str | None]] = {}
        for fetched in ordered:
            target_key = None if isinstance(fetched.final, FetchError) else keys[fetched.last]
            for hop in fetched.hops:
                # A longer chain can fail for its length alone, where this one succeeded.
                if hops.get(hop.origin, (hop, None))[1] is None:
                    hops[hop.origin] = hop, target_key
        for hop, target_key in hops.values():
            before = self.before(hop.origin)
            where: str | None = None
            if hop.origin + "/" != hop.target and hop.target + "/" != hop.origin:
                is_same = (before.target, before.status) == (hop.target, hop.status)
                where = (is_same and before.redirect) or self.redirect(hop, target_key)
            yield Redirect(
                origin=hop.origin,
                target=hop.target,
                status=hop.status,
                key=where,
                target_key=target_key,
            )
            if hop.exchange and where == key.redirect(self.tist, hop.origin):
                yield hop.exchange

    def _final(self, url: str, final: Final, as_pdf: bool) -> Iterator[Row]:
        if isinstance(final, FetchError):
            yield from self._failure(url, final)
            return
        before = self.before(url)
        if isinstance(final, FileContent) and final.sha256 != before.digest:
            yield self._version(url, final, as_pdf)
            what = CHANGE if before.present else APPEARANCE
            again = before.lost
            where = key.key(self.tist, url)
            yield Incidence(id=url, kind=FILE, what=what, key=where, again=again)
            if final.exchange:
                yield final.exchange
            return
        if before.lost and before.key:
            yield Incidence(id=url, kind=FILE, what=APPEARANCE, key=before.key, again=True)
        etag, last_modified = final.etag, final.last_modified
        if isinstance(final, Unchanged):  # a 304 may leave out known validators
            etag, last_modified = etag or before.etag, last_modified or before.last_modified
        yield SeenRow(
            id=url, kind=FILE, status=final.status, etag=etag, last_modified=last_modified
        )

    def _version(self, url: str, content: FileContent, as_pdf: bool) -> Version:
        # A page in place of a file. A PDF is recognised by its bytes alone.
        is_html = content.media_type in _HTML or _looks_like_html(content.head)
        is_page = is_html and _PDF not in content.head
        flags = {LANDING: is_page, SOFT_404: is_page and as_pdf}
        return Version(
            id=url,
            kind=FILE,
            key=key.key(self.tist, url),
            bytes=content.size,
            md5=content.md5,
            sha256=content.sha256,
            modified=content.modified,
            encoding=content.coding,
            media_type=content.media_type,
            etag=content.etag,
            last_modified=content.last_modified,
            flags=tuple(flag for flag, applies in flags.items() if applies),
        )

    def _failure(self, url: str, failure: FetchError) -> Iterator[Row]:
        before = self.before(url)
        outcome = OUTCOMES[failure.code]
        lost = outcome.loss
        if not (lost and before.present):
            yield FailureRow(
                id=url, code=failure.code, status=failure.status, detail=failure.detail
            )
        if outcome.unreachable and before.since is not None:
            often = before.unreached + 1 >= LOST_RUNS
            lost = often and self.tist - before.since >= LOST_SECONDS
        if lost and before.present and before.key:
            yield Incidence(id=url, kind=FILE, what=DELETION, key=before.key)


def _where(rows: Iterable[Row], before: Before) -> str | None:
    """Return the key of the bytes of a URL, given its rows in this run."""
    for row in rows:
        if isinstance(row, Version):
            return row.key
        if isinstance(row, FailureRow) or (isinstance(row, Incidence) and row.what == DELETION):
            return None
    return before.key


def _place(row: Row) -> tuple[str, str, str]:
    subject = row.origin if isinstance(row, Redirect) else getattr(row, "id", "")
    return subject, row.row, getattr(row, "what", "")


def _looks_like_html(head: bytes) -> bool:
    rest = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    while rest.startswith((b"<!--", b"<?xml")):
        _, end, rest = rest.partition(b"-->" if rest.startswith(b"<!--") else b"?>")
        if not end:
            return False
        rest = rest.lstrip()
    return b" ".join(rest[:64].split()).lower().startswith(_MARKS)
