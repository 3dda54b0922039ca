"""The index of captures over HTTP: a query in, lines out, a bounded number at a time.

Where more is there than an answer holds, its header Link says where it goes on (RFC 8288), and a
resume key does where it is asked for, as the Internet Archive's server gives it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from functions.content import query, sieve, stamp
from functions.content.capture import Capture
from functions.content.errors import NotIndexed
from functions.content.line import FORMS
from functions.content.query import BadQuery, Query
from functions.content.resume import Key, cut
from functions.content.seam import Place, Searching
from functions.oai.engine import QueryError
from functions.oai.errors import OAIError
from functions.oai.event import Call, Reply
from functions.snapshot.configuration import Configuration
from functions.snapshot.manifest import Manifest

LARGEST = 4_000_000
"""Bytes of an answer, about: Lambda gives 6 MB at most, and base64 adds a third."""

PLAIN = "text/plain"
_LONGEST = 6000
"""Characters of a header; gateways take 10 KB of all. Where it is longer the key is told below."""
_BATCH = 2048
_SCANNED = 5
"""How many times as many captures are looked at for an answer as it may have lines."""


@dataclass(slots=True)
class _Lines:
    """The lines of an answer as they come; `left` captures may still be looked at."""

    query: Query
    most: int
    left: int
    mark: str = ""
    size: int = 0
    captures: list[Capture] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    end: Place | None = None

    @property
    def is_full(self) -> bool:
        """Whether nothing more goes in."""
        return len(self.texts) >= self.most or self.size >= LARGEST

    def add(self, capture: Capture) -> None:
        """Take a capture, unless it is like the one before it."""
        collapse = self.query.collapse
        if collapse is not None:
            mark = collapse.mark(capture)
            if mark == self.mark:
                return
            self.mark = mark
        form = FORMS[self.query.output]
        text = form.write(capture, self.query.fields or form.fields) + "\n"
        self.captures.append(capture)
        self.texts.append(text)
        self.size += len(text)


def reply(call: Call, search: Searching, manifest: Manifest, settings: Configuration) -> Reply:
    """Return the answer to a call at /cdx: lines, 400 for what is no query.

    `call.base` is what the paths here lie below. Raises StoreError.
    """
    try:
        pairs = call.pairs()
        asked = query.read(pairs, manifest.namespace)
        lines = _found(asked, search, manifest, settings["content.lines"])
    except (BadQuery, OAIError) as error:
        return refusal(400, str(error))
    except QueryError as error:
        (line, *_) = str(error).splitlines()
        return refusal(400, f"filter has no regular expression of RE2: {line}")
    except NotIndexed as error:
        return unavailable(error, settings)
    form = FORMS[asked.output]
    texts = lines.texts[::-1] if asked.is_last else lines.texts
    head = [form.head + "\n"] if form.head else []
    headers, tail = {}, []
    if lines.end is not None:
        key = Key(lines.end, lines.mark if asked.collapse else "").to_text(manifest.namespace)
        more = None if asked.limit is None else asked.limit - len(texts) or asked.limit
        link = f'<{_following(call, pairs, key, more, asked)}>; rel="next"'
        is_told = len(link) <= _LONGEST
        if is_told:
            headers["Link"] = link
        if asked.shows_key or not is_told:
            tail = [form.key(key)]
    body = "".join((*head, *texts, *tail)).encode()
    return Reply(200, form.type, body, headers, hashlib.sha256(body).hexdigest()[:32])


def refusal(status: int, text: str) -> Reply:
    """Return an answer of one line for people, whatever it quotes."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return Reply(status, PLAIN, f"{line}\n".encode("utf-8", "replace"))


def unavailable(error: NotIndexed, settings: Configuration) -> Reply:
    """Return the answer where nothing can be searched until somebody publishes."""
    seconds = str(settings["serve.retry_seconds"])
    return replace(refusal(503, f"{error}."), headers={"Retry-After": seconds})


def _following(
    call: Call, pairs: Sequence[tuple[str, str]], key: str, more: int | None, asked: Query
) -> str:
    """Return the address of what comes next: the same query with a resume key."""
    kept = [(name, text) for name, text in pairs if name not in ("resumeKey", "limit")]
    limit = [] if more is None else [("limit", str(-more if asked.is_last else more))]
    found = urlencode([*kept, *limit, ("resumeKey", key)], errors="surrogatepass")
    return f"{call.base}/cdx?{found}"


def _found(asked: Query, search: Searching, manifest: Manifest, most: int) -> _Lines:
    """Return the lines of a query, and where they end before all is told."""
    wanted = most if asked.limit is None else min(asked.limit, most)
    lines = _Lines(asked, wanted, _SCANNED * most, asked.resume.mark if asked.resume else "")
    if asked.closest is not None:
        for capture in _near(asked, asked.closest, search, manifest, wanted):
            if not lines.is_full:
                lines.add(capture)
        return lines
    _walk(lines, search, manifest)
    return lines


def _walk(lines: _Lines, search: Searching, manifest: Manifest) -> None:
    """Fill lines with what the ranges of a query have, from where it goes on."""
    asked = lines.query
    after = asked.resume.place if asked.resume else None
    step = -1 if asked.is_reverse else 1
    for first, last in asked.scope.ranges[::step]:
        if after is not None and (after.surt > cut(last) if step > 0 else after.surt < cut(first)):
            continue
        place = after
        while True:
            batch = min(_BATCH, max(1, lines.left))
            if not asked.filters and asked.collapse is None:
                batch = min(batch, max(1, lines.most - len(lines.texts)))
            found = search.page(
                manifest, first, last, place, batch, asked.since, asked.until,
                reverse=asked.is_reverse,
            )  # fmt: skip
            lines.left -= len(found.captures)
            passed = sieve.sifted(found.captures, asked.filters, search.matching)
            for capture in passed:
                lines.add(capture)
                if lines.is_full:
                    is_last = capture is found.captures[-1] and found.after is None
                    lines.end = None if is_last and _is_over(lines, first) else _place(capture)
                    return
            place = found.after
            if place is None:
                break
            if lines.left <= 0 or len(found.captures) < batch:
                lines.end = place
                return


def _is_over(lines: _Lines, first: str) -> bool:
    """Tell whether no range comes behind the one that begins there."""
    ranges = lines.query.scope.ranges
    return first == ranges[0 if lines.query.is_reverse else -1][0]


def _place(capture: Capture) -> Place:
    return Place(cut(capture.surt), int(capture.stamp or "0"), capture.position)


def _near(
    asked: Query, moment: int, search: Searching, manifest: Manifest, most: int
) -> Sequence[Capture]:
    """Return captures of one URL, those first that are nearest to a date, which have one."""
    found: list[Capture] = []
    for is_reverse in (False, True):
        since = max(asked.since, 1) if is_reverse else max(asked.since, moment)
        until = min(asked.until, moment - 1) if is_reverse else asked.until
        side = replace(
            asked, since=since, until=until, is_reverse=is_reverse, collapse=None, output="text"
        )
        lines = _Lines(side, most, _SCANNED * most)
        _walk(lines, search, manifest)
        found += lines.captures
    when = stamp.to_instant(moment)

    def distance(capture: Capture) -> tuple[object, ...]:
        return abs(stamp.to_instant(int(capture.stamp)) - when), capture.stamp, capture.position

    return sorted(found, key=distance)[:most]
