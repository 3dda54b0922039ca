"""Lists: walked from page to page, and what must hold within and between their pages."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from builder.check.checks import CheckCard
from builder.check.conversation import Conversation
from builder.check.reply import OaiReply, local
from builder.check.sample import RecordSample
from functions.snapshot.instant import from_datestamp

NOTHING = "noRecordsMatch"
_SHARE = 0.05
"""Share of a list whose lack may be a wrong estimate of its size."""
_EMPTY = 80
"""Pages without records in a row, after which a list has no end."""
_SLOW_FIRST, _SLOW_LATER, _FACTOR = 10.0, 5.0, 3.0


@dataclass(frozen=True, slots=True)
class ListedItem:
    """A header as one list had it, or a set without sets, and the exchange that had it."""

    identifier: str
    datestamp: str
    deleted: bool
    sets: tuple[str, ...]
    request: int

    def show(self) -> str:
        """Return it in a few words."""
        return f"{'deleted' if self.deleted else 'live'} {self.datestamp}"


@dataclass(slots=True)
class PageWalk:
    """A list as far as it was walked. `ended`: to its end; `broken`: a token led nowhere.

    `stopped` says why it was not walked on. `seconds` are those of each page.
    """

    verb: str
    arguments: Mapping[str, str]
    items: list[ListedItem] = field(default_factory=list)
    identifiers: set[str] = field(default_factory=set)
    names: list[list[str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    size: int | None = None
    lost: int = 0
    codes: tuple[str, ...] = ()
    is_torn: bool = False
    ended: bool = False
    broken: bool = False
    stopped: str = ""
    sends_cookies: bool = False

    @property
    def count(self) -> int:
        """Number of items so far, unreadable ones included."""
        return len(self.items) + self.lost

    def counts(self) -> set[int]:
        """Return the number of items so far, with and without those that came twice."""
        return {self.count, len(self.identifiers) + self.lost}

    def repeats(self) -> set[str]:
        """Return the identifiers that came more than once."""
        counts = Counter(item.identifier for item in self.items)
        return {name for name, count in counts.items() if count > 1}

    @property
    def prefix(self) -> str:
        """The format of its records."""
        return self.arguments.get("metadataPrefix", "")


def list_items(reply: OaiReply) -> list[ListedItem]:
    """Return the headers of a reply."""
    return [
        ListedItem(e.identifier, e.datestamp, e.deleted, e.sets, reply.number)
        for e in (reply.page.entries if reply.page else ())
    ]


def walk_list(
    talk: Conversation,
    verb: str,
    arguments: Mapping[str, str],
    most: int,
    reserve: float = 0.0,
    sample: RecordSample | None = None,
    most_of_large: int = 0,
) -> PageWalk:
    """Walk a list over at most `most` pages, and while more than `reserve` seconds are left.

    Of a list that is known to have more pages, `most_of_large` are walked instead.
    """
    walk, sent = PageWalk(verb, arguments), arguments
    while True:
        reply = talk.ask(("verb", verb), *sent.items())
        if reply is None:
            walk.stopped = talk.asker.reason
            return walk
        if reply.codes and walk.tokens and NOTHING not in reply.codes:
            # It may pass: harvesters ask again, too.
            reply = talk.ask(("verb", verb), *sent.items()) or reply
        if not _take(talk, walk, reply, sample):
            return walk
        token = walk.tokens[-1]
        if token in walk.tokens[:-1]:
            talk.card.hold("L01", False, "the token came before", token, reply.number)
            walk.stopped, walk.broken = "its token came before", True
            return walk
        pages = len(walk.seconds)
        if most_of_large and (walk.size or 0) * pages > most * max(walk.count, 1):
            most = most_of_large
        if pages >= most or talk.asker.seconds_left() < reserve:
            walk.stopped = f"only {pages} pages were walked"
            if pages > _EMPTY and not any(walk.names[-_EMPTY:]):
                seen = f"{_EMPTY} pages in a row have no records"
                talk.card.hold("L01", False, seen, token, reply.number)
            return walk
        sent = {"resumptionToken": token}


def _take(talk: Conversation, walk: PageWalk, reply: OaiReply, sample: RecordSample | None) -> bool:
    """Add a page to a walk, judge it, and return whether there is a next one."""
    page, card, is_first = reply.page, talk.card, not walk.seconds
    where = walk.tokens[-1] if walk.tokens else walk.verb
    if page is None or (page.errors and reply.child() is None and not page.entries):
        if is_first:
            walk.codes = reply.codes
            walk.ended = reply.codes in ((NOTHING,), ("noSetHierarchy",))
            walk.stopped = ", ".join(reply.codes) or "it is not answered"
        else:
            walk.broken, walk.stopped = True, "a token was not answered"
            if page is not None:
                seen = f"the error {', '.join(reply.codes)} after {walk.count:,} records"
                card.hold("L04", False, seen, where, reply.number)
        return False
    walk.sends_cookies = walk.sends_cookies or "set-cookie" in reply.exchange.fields
    if not is_first:
        card.hold("L04", True)
    before, size, token = walk.counts(), page.size, page.token
    walk.size = walk.size if size is None else size
    walk.seconds.append(reply.exchange.seconds)
    items = list_items(reply)
    if walk.verb == "ListSets":
        items = [ListedItem(r.get("setSpec", ""), "", False, (), reply.number) for r in page.rows]
    if items and walk.identifiers.issuperset(item.identifier for item in items):
        card.hold("L01", False, "a page of records that all came before", where, reply.number)
        walk.stopped, walk.broken = "its records came before", True
        return False
    walk.items += items
    walk.identifiers.update(item.identifier for item in items)
    walk.names.append([item.identifier for item in items])
    walk.lost += len(page.lost)
    if sample is not None:
        for entry in page.entries:
            sample.add(entry, walk.prefix, reply.number)
    if reply.root is not None:
        _judge_token(talk, reply, before)
    has_records = items or page.lost or not (token or _is_whole(walk))
    card.hold("L05", has_records, f"no records after {max(before):,}", where, reply.number)
    walk.tokens += [token] if token else []
    walk.is_torn = walk.is_torn or page.torn
    if not token and not page.torn:
        walk.ended = True
        _judge_end(card, walk, token, reply.number)
    return bool(token)


def _is_whole(walk: PageWalk) -> bool:
    return walk.size is None or walk.count >= walk.size * (1 - _SHARE)


def _judge_token(talk: Conversation, reply: OaiReply, before: set[int]) -> None:
    """Judge the attributes of a page's resumptionToken."""
    content = reply.child()
    for element in () if content is None else content:
        if local(element) == "resumptionToken":
            if (cursor := element.get("cursor")) is not None:
                seen = f"cursor is {cursor!r} after {max(before):,} records"
                right = cursor.isdigit() and int(cursor) in before
                talk.card.hold("L08", right, seen, element.text or "", reply.number)
            if (date := element.get("expirationDate")) is not None:
                right = from_datestamp(date) is not None and date > talk.begun
                seen = f"expirationDate is {date!r}"
                talk.card.hold("L14", right, seen, element.text or "", reply.number)
            if (size := element.get("completeListSize")) is not None and not size.isdigit():
                seen = f"completeListSize is {size!r}"
                talk.card.hold("L03", False, seen, element.text or "", reply.number)


def _judge_end(card: CheckCard, walk: PageWalk, token: str | None, number: int) -> None:
    """Judge the last page of a list, and the number of its records."""
    card.hold("L01", True)
    seen = f"{walk.count:,} records, completeListSize {walk.size or 0:,}"
    if not card.hold("L02", _is_whole(walk), seen, request=number):
        return
    if walk.size is not None:
        card.hold("L03", walk.size in walk.counts(), seen, request=number)
    if len(walk.seconds) == 1:
        card.hold("L06", token is None, "its first page has an empty token", request=number)
    else:
        seen = "the last page has no resumptionToken"
        card.hold("L07", token is not None, seen, request=number)


def judge_walk(talk: Conversation, walk: PageWalk) -> None:
    """Judge what only several pages show: repeats, order, tokens, cookies, speed."""
    card, seconds = talk.card, walk.seconds
    by_name: dict[str, ListedItem] = {}
    for item in walk.items:
        earlier = by_name.setdefault(item.identifier, item)
        if earlier is not item and talk.is_old(item.datestamp, earlier.datestamp):
            seen = f"{earlier.show()}, and {item.show()}"
            card.hold("L10", False, seen, item.identifier, item.request)
    card.applied.add("L10")
    if seconds:
        card.hold("H11", seconds[0] <= _SLOW_FIRST, f"{seconds[0]:.1f} s")
    if len(seconds) > 3:
        late = median(seconds[-3:])
        right = late <= max(_SLOW_LATER, _FACTOR * seconds[0])
        card.hold("H12", right, f"page 1 took {seconds[0]:.1f} s, page {len(seconds)} {late:.1f} s")
    if walk.tokens and not walk.broken and len(seconds) > 1:
        last = len(walk.names) - 1
        token = walk.tokens[last - 1]
        again = talk.ask_verb(walk.verb, resumptionToken=token)
        _compare_page(talk, "L09", walk.names[last], again, token)
    again = None
    if walk.names and not walk.is_torn:
        again = talk.ask(("verb", walk.verb), *walk.arguments.items())
        _compare_page(talk, "L11", walk.names[0], again, walk.verb)
    if walk.tokens and walk.sends_cookies:
        token = walk.tokens[0] if again is None or again.page is None else again.page.token or ""
        bare = talk.ask(("verb", walk.verb), ("resumptionToken", token), cookies=False, wrong=True)
        if bare is not None:
            seen = f"without its cookies: {', '.join(bare.codes) or bare.exchange.status}"
            card.hold("H09", bare.is_list, seen, token, bare.number)
    else:
        card.hold("H09", True)


def _compare_page(
    talk: Conversation, check: str, names: Sequence[str], again: OaiReply | None, where: str
) -> None:
    """Judge whether a page is the same again, but for what changed since the visit began."""
    if again is None:
        talk.card.leave(talk.asker.reason, check)
        return
    if again.page is None or again.page.torn:
        return
    entries = again.page.entries
    if not talk.is_old(*(entry.datestamp for entry in entries)):
        return
    others = [entry.identifier for entry in entries]
    seen = f"{len(names)} records, then {len({*names} & {*others})} of these"
    if again.codes:
        seen = f"the error {', '.join(again.codes)}"
    elif {*names} == {*others}:
        seen = "the same records in another order"
    talk.card.hold(check, [*names] == others, seen, where, again.number)
