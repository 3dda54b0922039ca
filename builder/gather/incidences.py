"""Verdicts: what the outcomes of a run mean for the files, as rows of its log.

Decided once all is fetched, from the outcomes and from what was known before, so that the rows do
not depend on the order in which answers came.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from builder.gather import interstitial
from builder.http.errors import NotHad
from builder.http.outcomes import OUTCOMES
from builder.http.response import Content, Fetched, Final, Hop, Unchanged
from builder.obi import key
from builder.obi.row import (
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

LOST_RUNS, LOST_SECONDS = 3, 14 * 86_400
"""A file is lost if in that many runs, over that much time, its server was not to be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What the runs before know of a URL.

    `key` and `digest` are of the newest bytes, None where there never were any. The file was not
    reached `unreached` times since anything else was heard of it, first at `since`. `target` is
    where it led the last time, by `status`, as `redirect` says in the store.
    """

    key: str | None = None
    digest: str | None = None
    text_sha256: str | None = None
    text_method: str | None = None
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
        """Whether there are bytes of it, and it is not lost."""
        return self.key is not None and not self.lost


@dataclass(frozen=True, slots=True)
class Text:
    """The digest of a file's text, and how that was got."""

    sha256: str
    method: str


@dataclass(slots=True)
class Verdict:
    """Makes the rows of the run `tist`.

    `pdf` tells whether the templates say that a URL is a PDF; `redirect` writes down a hop with
    the key of its bytes and returns where that lies; `texts` are of bytes, by their SHA-256.
    """

    tist: int
    before: Callable[[str], Before]
    pdf: Callable[[str], bool]
    redirect: Callable[[Hop, str | None], str]
    texts: Mapping[str, Text] = field(default_factory=dict)

    def rows(self, outcomes: Iterable[Fetched]) -> list[Row]:
        """Return the rows of all outcomes, each URL asked for once, in an order of their own."""
        ordered = sorted(outcomes, key=lambda fetched: fetched.asked)
        askers: dict[str, list[Fetched]] = {}
        for fetched in ordered:
            askers.setdefault(fetched.last, []).append(fetched)
        rows: list[Row] = []
        keys: dict[str, str | None] = {}
        failed: dict[str, NotHad] = {}
        for last in sorted(askers):
            final = askers[last][0].final
            if isinstance(final, NotHad) and OUTCOMES[final.code].chain:
                keys[last] = None  # the way is at fault, for each who took it: below
                continue
            if isinstance(final, NotHad):
                failed[last] = final
            as_pdf = any(map(self.pdf, {last, *(f.asked for f in askers[last])}))
            made = list(self._final(last, final, as_pdf))
            rows += made
            keys[last] = _where(made, self.before(last))
        for fetched in ordered:
            if isinstance(fetched.final, NotHad) and fetched.asked not in failed:
                failed[fetched.asked] = fetched.final
                rows += self._failed(fetched.asked, fetched.final)
        rows += self._hops(ordered, keys)
        return sorted(rows, key=_place)

    def _hops(self, ordered: Iterable[Fetched], keys: Mapping[str, str | None]) -> Iterator[Row]:
        found: dict[str, tuple[Hop, str | None]] = {}
        for fetched in ordered:
            target_key = None if isinstance(fetched.final, NotHad) else keys[fetched.last]
            for hop in fetched.hops:
                # Who came from farther can have failed for that alone, on the same way.
                if found.get(hop.origin, (hop, None))[1] is None:
                    found[hop.origin] = hop, target_key
        for hop, target_key in found.values():
            yield Redirect(
                origin=hop.origin,
                target=hop.target,
                status=hop.status,
                key=self._written(hop, target_key),
                target_key=target_key,
            )

    def _written(self, hop: Hop, target_key: str | None) -> str | None:
        if hop.origin + "/" == hop.target or hop.target + "/" == hop.origin:
            return None
        known = self.before(hop.origin)
        if known.redirect and (known.target, known.status) == (hop.target, hop.status):
            return known.redirect
        return self.redirect(hop, target_key)

    def _final(self, url: str, final: Final, as_pdf: bool) -> Iterator[Row]:
        if isinstance(final, NotHad):
            yield from self._failed(url, final)
            return
        known = self.before(url)
        if isinstance(final, Content) and final.sha256 != known.digest:
            yield self._version(url, final, known, as_pdf)
            what = CHANGE if known.present else APPEARANCE
            again = known.lost
            where = key.key(self.tist, url)
            yield Incidence(id=url, kind=FILE, what=what, key=where, again=again)
            return
        if known.lost and known.key:
            yield Incidence(id=url, kind=FILE, what=APPEARANCE, key=known.key, again=True)
        etag, last_modified = final.etag, final.last_modified
        if isinstance(final, Unchanged):  # a 304 need not say again what was said before
            etag, last_modified = etag or known.etag, last_modified or known.last_modified
        yield SeenRow(
            id=url, kind=FILE, status=final.status, etag=etag, last_modified=last_modified
        )

    def _version(self, url: str, content: Content, known: Before, as_pdf: bool) -> Version:
        text = self.texts.get(content.sha256)
        flags = interstitial.flags(content, as_pdf)
        if text and (text.sha256, text.method) == (known.text_sha256, known.text_method):
            flags = tuple(sorted((*flags, interstitial.TEXT_SAME)))
        return Version(
            id=url,
            kind=FILE,
            key=key.key(self.tist, url),
            bytes=content.size,
            md5=content.md5,
            sha256=content.sha256,
            text_sha256=text.sha256 if text else None,
            text_method=text.method if text else None,
            modified=content.modified,
            encoding=content.coding,
            media_type=content.media_type,
            etag=content.etag,
            last_modified=content.last_modified,
            flags=flags,
        )

    def _failed(self, url: str, failure: NotHad) -> Iterator[Row]:
        known = self.before(url)
        outcome = OUTCOMES[failure.code]
        lost = outcome.loss
        if not (lost and known.present):
            yield FailureRow(
                id=url, code=failure.code, status=failure.status, detail=failure.detail
            )
        if outcome.unreachable and known.since is not None:
            often = known.unreached + 1 >= LOST_RUNS
            lost = often and self.tist - known.since >= LOST_SECONDS
        if lost and known.present and known.key:
            yield Incidence(id=url, kind=FILE, what=DELETION, key=known.key)


def _where(rows: Iterable[Row], known: Before) -> str | None:
    """Return where the bytes of a URL lie, given its rows in this run."""
    for row in rows:
        if isinstance(row, Version):
            return row.key
        if isinstance(row, FailureRow) or (isinstance(row, Incidence) and row.what == DELETION):
            return None
    return known.key


def _place(row: Row) -> tuple[str, str, str]:
    subject = row.origin if isinstance(row, Redirect) else getattr(row, "id", "")
    return subject, row.row, getattr(row, "what", "")
