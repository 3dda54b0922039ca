"""Harvesters: what they hold, the lists that they walk, and what each page of one must be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from functions.oai.token import Token
from functions.snapshot import instant
from tests.builder.conftest import NAMESPACE
from tests.functions.oai.client import Page
from tests.interleaving.chronicle import Chronicle, Row
from tests.interleaving.held import Held, held, records
from tests.interleaving.operation import IDENTITY
from tests.interleaving.reader import Answered, Reader

NONE = {"noRecordsMatch", "noSetHierarchy"}
"""What says that a list is empty; a repository in which all is unknown has no sets either."""


@dataclass(frozen=True)
class Question:
    """The arguments of a list."""

    verb: str
    spec: str | None = None
    start: str | None = None
    end: str | None = None

    def arguments(self) -> dict[str, str]:
        given = {"set": self.spec, "from": self.start, "until": self.end}
        some = {name: value for name, value in given.items() if value is not None}
        return {"verb": self.verb, "metadataPrefix": "oai_dc", **some}

    def chosen(self, row: Row) -> bool:
        start = self.start and instant.from_text(self.start)
        end = self.end and instant.from_text(self.end)
        return (
            row.item.listed(self.spec)
            and (not start or row.stamp >= start)
            and (not end or row.stamp <= end)
        )


@dataclass
class Walk:
    """A list that is being walked: pages are checked against what the chronicle has of them."""

    question: Question
    limit: int
    token: str = ""
    over: bool = False
    found: dict[str, Held] = field(default_factory=dict)
    dates: list[str] = field(default_factory=list)
    asked: str = ""
    """The token of the last page."""
    last: Answered | None = None
    estimated: bool = False
    """The size of the list is an estimate, for it outlived its snapshot."""
    outlived: bool = False
    _seen: dict[int, set[str]] = field(default_factory=dict)
    """Of each snapshot that may have given the last page, what it has listed since it came."""

    def go_on(self, chronicle: Chronicle, reader: Reader, meanwhile: Callable[[], None]) -> bool:
        """Ask for the next page; tell whether there was an answer."""
        kept = chronicle.kept()
        token = self._token(self.token) if self.token else None
        answered = reader.ask(chronicle, self._arguments(self.token), meanwhile)
        if answered is None:
            return False
        gone = token is not None and token.snapshot not in kept & chronicle.kept()
        if token is None:
            served = set(answered.current)
        elif gone:
            served = {*answered.current, token.snapshot}
        else:
            served = {token.snapshot}
        page = answered.page
        self.estimated = self.estimated or gone
        self.outlived = self.outlived or gone
        matches = [n for n in served - {0} if self._fits(chronicle, n, token, answered)]
        assert matches, f"{self.question} from {token}: no page of {served}: {page.headers}"
        for number in matches:
            self._hides(chronicle, number, answered)
        self._take(page, set(matches))
        self.asked, self.token, self.last = self.token, page.next, answered
        self.over = not page.next
        if page.next and self._token(page.next).snapshot not in matches:
            self.estimated = False
        return True

    def again(self, chronicle: Chronicle, reader: Reader) -> None:
        """Ask for the last page once more: while its snapshot is kept it has the same bytes."""
        if self.last is None or not self.asked:
            return
        token = self._token(self.asked)
        if token.snapshot not in chronicle.kept():
            return
        answered = reader.ask(chronicle, self._arguments(self.asked))
        if answered is None:
            return
        assert records(answered.page) == records(self.last.page)
        if self.token and self._token(self.token).snapshot == token.snapshot:
            assert _undated(answered) == _undated(self.last)

    def _token(self, text: str) -> Token:
        return Token.from_text(text, self.question.verb, NAMESPACE, IDENTITY)

    def _arguments(self, token: str) -> dict[str, str]:
        if token:
            return {"verb": self.question.verb, "resumptionToken": token}
        return self.question.arguments()

    def _fits(
        self, chronicle: Chronicle, number: int, token: Token | None, answered: Answered
    ) -> bool:
        """Tell whether this is the page of a snapshot, and what follows follows."""
        snapshot, page = chronicle.snapshots[number], answered.page
        position, cursor = (token.position, token.cursor) if token else (1, 0)
        rows = [r for r in snapshot.rows if r.position >= position and self.question.chosen(r)]
        if page.codes:
            return not rows and set(page.codes) <= NONE and self._ended(chronicle, number, answered)
        given = records(page)
        verb, spec = self.question.verb, self.question.spec
        expected = [(r.name, held(r, verb, spec)) for r in rows[: self.limit]]
        if given != expected or not given:
            return False
        reached, whole = cursor + len(given), cursor + len(rows)
        onward = self._token(page.next) if page.next else None
        if onward is None:
            if len(rows) > self.limit or not self._ended(chronicle, number, answered):
                return False
            return self._told(page, cursor, reached) if cursor else page.token is None
        if onward.cursor != reached:
            return False
        if len(rows) > self.limit:
            estimate = self.estimated and self._told(page, cursor, None)
            return onward.snapshot == number and (estimate or self._told(page, cursor, whole))
        if onward.snapshot <= number or onward.snapshot not in chronicle.snapshots:
            return False
        added = self._since(chronicle, onward.snapshot, number)
        return self._told(page, cursor, whole + added)

    def _told(self, page: Page, cursor: int, size: int | None) -> bool:
        """Tell whether a page's cursor and size are these; an estimated size may be any."""
        if page.token is None or page.token.get("cursor") != str(cursor):
            return False
        told = int(page.token.get("completeListSize", 0))
        more = cursor + len(page.headers) + bool(page.next)
        return told == size if size is not None else told >= more

    def _ended(self, chronicle: Chronicle, number: int, answered: Answered) -> bool:
        """Tell whether the list may end here: nothing of it came since, as of the pointer anew."""
        current = answered.current - {0}
        return answered.anew and any(
            n <= number or not self._since(chronicle, n, number) for n in current
        )

    def _since(self, chronicle: Chronicle, number: int, older: int) -> int:
        """Count what took effect after the older snapshot, or again, as it had come too late."""
        rows, effective = chronicle.snapshots[number].rows, chronicle.snapshots[older].effective
        return sum(r.stamp > effective and self.question.chosen(r) for r in rows)

    def _hides(self, chronicle: Chronicle, number: int, answered: Answered) -> None:
        for row in chronicle.snapshots[number].rows:
            if row.item.deleted:
                for title in chronicle.titles(row.name):
                    assert title.encode() not in answered.data

    def _take(self, page: Page, served: set[int]) -> None:
        self.dates.append(page.response_date)
        names = [name for name, _ in records(page)]
        # A page may be that of two snapshots alike; which of them gave it shows later, or never.
        seen = {number: [*self._seen.get(number, ()), *names] for number in served}
        single = [number for number, listed in seen.items() if len(set(listed)) == len(listed)]
        assert single, f"an item comes twice within snapshot {served}: {names}"
        self._seen = {number: set(seen[number]) for number in single}
        for name, one in records(page):
            self.found[name] = one


@dataclass
class Harvester:
    """Walks one list at a time, and remembers the dates of the answers of those that it ended."""

    verb: str
    spec: str | None
    holdings: dict[str, Held] = field(default_factory=dict)
    dates: list[str] = field(default_factory=list)
    walk: Walk | None = None
    outlived: bool = False

    def begin(self, start: int, until: str | None, limit: int) -> None:
        """Begin a list, from the date that is the `start`th last of those told; 0: from none."""
        date = self.dates[-start] if 0 < start <= len(self.dates) else None
        if date is not None and until is not None and until < date:
            until = None
        self.walk = Walk(Question(self.verb, self.spec, date, until), limit)

    def ended(self) -> None:
        """Take over what an ended list gave. One that had an `until` is no base for going on."""
        walk, self.walk = self.walk, None
        assert walk is not None
        self.outlived = self.outlived or walk.outlived
        if walk.question.end is None:
            self.holdings.update(walk.found)
            self.dates += walk.dates

    def check(self, rows: Sequence[Row]) -> None:
        """Check that it holds exactly the repository's state, or its set's.

        What has left the set is deleted there. Where a list outlived its snapshot, what that one
        gave may have got another instant, as it had come too late, and the list did not tell.
        """
        there = {r.name: held(r, self.verb, self.spec) for r in rows if r.item.listed(self.spec)}
        if self.outlived:
            assert {n: h.item for n, h in there.items()} == {
                n: h.item for n, h in self.holdings.items()
            }
            return
        assert there == self.holdings


def _undated(answered: Answered) -> bytes:
    return answered.data.replace(answered.page.response_date.encode(), b"", 1)
