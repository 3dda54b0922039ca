"""An OAI-PMH repository of this machine, in order, or with any of the defects that exist.

    with listening.serving(items(250), "no-last-token", "503") as provider:
        harvest(provider.url, ...)
        provider.change(provider.items["oai:a.cz:7"], title="Another")

Its clock stands still until a test moves it, its lists are in the order of datestamps, and its
tokens say what they ask for. `defects.DEFECTS` has each switch and what it does.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode

from tests.builder.sources.harvest import element
from tests.builder.sources.harvest.element import Item

NOW = datetime(2026, 11, 22, 10, 0, 0, tzinfo=UTC)
PREFIXES = {
    "oai_dc": (
        "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
        "http://www.openarchives.org/OAI/2.0/oai_dc/",
    ),
    "marc21": (
        "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd",
        "http://www.loc.gov/MARC21/slim",
    ),
}
SETS = {"a": "The first set", "a:b": "A part of it", "c": "Ćtvrtky & pátky"}
_DAY = "%Y-%m-%d"
_SECOND = "%Y-%m-%dT%H:%M:%SZ"


def items(count: int, seconds: int = 3600) -> list[Item]:
    """Return items of which each is so many seconds younger than the one before it."""
    stamp = NOW - timedelta(days=1, seconds=seconds * count)
    sets = ((), ("a",), ("a:b", "c"))
    return [
        Item(
            f"oai:a.cz:{number}",
            stamp + timedelta(seconds=seconds * number),
            f"Title {number} – ěšč & <b>",
            sets[number % 3],
            deleted=number % 10 == 9,
        )
        for number in range(count)
    ]


@dataclass(frozen=True)
class Call:
    """A request: its arguments, how many came before it, and how often this one came before."""

    arguments: Mapping[str, str]
    number: int
    times: int
    accepts: str = ""

    @property
    def verb(self) -> str:
        return self.arguments.get("verb", "")

    @property
    def is_list(self) -> bool:
        return self.verb in ("ListRecords", "ListIdentifiers")


@dataclass(frozen=True)
class Page:
    """A page of a list: what is listed, and what is said of the rest. `depth` is 0 for the first.

    `token` is "" for an empty token, and None for no element of that name.
    """

    items: tuple[Item, ...]
    token: str | None
    cursor: int | None
    size: int | None
    depth: int
    start: int
    asked: str = ""


@dataclass(frozen=True)
class Answer:
    """What goes over the wire: `cut` is how many bytes of the body do, `reset` that none do."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: int | None = None
    chunked: bool = False
    pause: float = 0.0
    close: bool = False
    silent: bool = False

    def headed(self, **headers: str) -> "Answer":
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **more})


class Fault(Exception):
    """An OAI-PMH error, and the status that it is answered with."""

    def __init__(self, code: str, text: str = "", status: int = 200) -> None:
        super().__init__(code)
        self.code, self.text, self.status = code, text, status


@dataclass
class Provider:
    """The repository. All may be changed at any time; `calls` tells what was asked."""

    items: dict[str, Item]
    defects: frozenset[str] = frozenset()
    page_size: int = 20
    now: datetime = NOW
    retry_after: str = "0"
    token_life: int = 3  # pages, where tokens die
    poison: frozenset[str] = frozenset()
    hang: float = 5.0  # seconds that pass where nothing is answered
    host: str = "127.0.0.1"
    port: int = 0
    calls: list[Call] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)  # the header X-Key of each request
    used: set[str] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    lock: threading.RLock = field(default_factory=threading.RLock)
    over: threading.Event = field(default_factory=threading.Event)
    before: list["Before"] = field(default_factory=list)
    pages: list["OfPage"] = field(default_factory=list)
    answers: list["OfAnswer"] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/oai"

    @property
    def form(self) -> str:
        """How it writes a datestamp."""
        return _DAY if "day" in self.defects else _SECOND

    def change(self, item: Item, **changes: object) -> Item:
        """Put an item as it is now, with another datestamp."""
        with self.lock:
            changed = replace(item, **{"stamp": self.now, **changes})  # type: ignore[arg-type]
            self.items[item.identifier] = changed
            return changed

    def delete(self, identifier: str) -> None:
        self.change(self.items[identifier], deleted=True)

    def verbs(self) -> list[str]:
        with self.lock:
            return [call.verb for call in self.calls]

    def state(self, set_: str = "") -> dict[str, tuple[str, bool, str]]:
        """Return what a harvester is to know in the end: datestamp, deleted and title of each."""
        return {
            one.identifier: (one.stamp.strftime(self.form), one.deleted, one.title)
            for one in self.items.values()
            if one.is_in(set_)
        }

    def call(self, query: str, accepts: str = "") -> Call:
        """Take note of a request."""
        given = {k: v[0] for k, v in parse_qs(query, keep_blank_values=True).items()}
        with self.lock:
            call = Call(given, len(self.calls), self.seen[query], accepts)
            self.seen[query] += 1
            self.calls.append(call)
        return call

    def page(self, call: Call) -> Page:
        """Return the page that is asked for. Raises Fault."""
        page = self.plain_page(call)
        for change in self.pages:
            page = change(self, call, page)
        return page

    def plain_page(self, call: Call) -> Page:
        """Return the page as a repository in order has it. Raises Fault."""
        given = self.arguments(call)
        wanted = self.wanted(given)
        if not wanted:
            raise Fault("noRecordsMatch", "nothing is")
        after = given.get("after")
        start = len(wanted)
        if after is None:
            start = 0
        else:
            start = sum(self.key(one) <= after for one in wanted)
        depth = int(given.get("depth", "0"))
        rest = wanted[start : start + self.page_size]
        token: str | None = None if depth == 0 else ""
        if start + len(rest) < len(wanted):
            token = self.token(given, self.key(rest[-1]), depth + 1)
        return Page(
            tuple(rest),
            token,
            start,
            len(wanted),
            depth,
            start,
            call.arguments.get("resumptionToken", ""),
        )

    def key(self, item: Item) -> str:
        return f"{item.stamp.strftime(_SECOND)} {item.identifier}"

    def token(self, given: Mapping[str, str], after: str, depth: int) -> str:
        return urlencode({**given, "after": after, "depth": str(depth)})

    def arguments(self, call: Call) -> dict[str, str]:
        """Return what a list is asked for by, out of the arguments or of the token."""
        if "resumptionToken" not in call.arguments:
            return {k: v for k, v in call.arguments.items() if k != "verb"}
        text = call.arguments["resumptionToken"]
        given = {k: v[0] for k, v in parse_qs(text).items()}
        if not given.keys() >= {"metadataPrefix", "after", "depth"}:
            raise Fault("badResumptionToken", "that is none of ours")
        return given

    def wanted(self, given: Mapping[str, str]) -> Sequence[Item]:
        """Return all items of a list, in order. Raises Fault."""
        if given.get("metadataPrefix") not in PREFIXES:
            raise Fault("cannotDisseminateFormat", given.get("metadataPrefix", ""))
        since = self.instant(given.get("from", ""), upper=False)
        until = self.instant(given.get("until", ""), upper=True)
        with self.lock:
            some = [
                one
                for one in self.items.values()
                if (since is None or one.stamp >= since)
                and (until is None or one.stamp <= until)
                and one.is_in(given.get("set", ""))
            ]
        return sorted(some, key=self.key)

    def instant(self, text: str, upper: bool) -> datetime | None:
        """Return the time that an argument means. Raises Fault."""
        if not text:
            return None
        if len(text) != 10 and self.form == _DAY:
            raise Fault("badArgument", "this repository knows days alone")
        try:
            found = datetime.strptime(text, _DAY if len(text) == 10 else _SECOND)
        except ValueError as error:
            raise Fault("badArgument", text) from error
        end = timedelta(days=1, microseconds=-1) if upper and len(text) == 10 else timedelta()
        return found.replace(tzinfo=UTC) + end

    def earliest(self) -> datetime:
        return min((one.stamp for one in self.items.values()), default=self.now)

    def said(self, call: Call) -> tuple[int, str]:
        """Return the status and what stands in an answer besides responseDate and request."""
        try:
            for refuse in self.before:
                refuse(self, call)
            if call.is_list:
                return 200, self.listed(call, self.page(call))
            return 200, _VERBS[call.verb](self, call)
        except KeyError:
            return 200, element.error(Fault("badVerb").code, "")
        except Fault as fault:
            return fault.status, element.error(fault.code, fault.text)

    def listed(self, call: Call, page: Page) -> str:
        """Return a page of a list."""
        prefix = self.arguments(call)["metadataPrefix"]
        if call.verb == "ListRecords":
            rows = "".join(element.record(one, prefix, self.form) for one in page.items)
        else:
            rows = "".join(element.header(one, self.form) for one in page.items)
        return f"<{call.verb}>{rows}{element.token(page)}</{call.verb}>"

    def answer(self, call: Call) -> Answer:
        """Answer a request."""
        status, said = self.said(call)
        body = element.document(self.now.strftime(_SECOND), self.request(call), said)
        kind = {"Content-Type": "text/xml; charset=utf-8"}
        answer = Answer(status, kind, body.encode("utf-8", "surrogatepass"))
        for change in self.answers:
            answer = change(self, call, answer)
        return answer

    def request(self, call: Call) -> str:
        return element.request(self.url, call.arguments)

    def identify(self, call: Call) -> str:
        del call
        granularity = "YYYY-MM-DD" if self.form == _DAY else "YYYY-MM-DDThh:mm:ssZ"
        return element.identify(self.url, self.earliest().strftime(self.form), granularity)

    def record(self, call: Call) -> str:
        item = self.items.get(call.arguments.get("identifier", ""))
        prefix = call.arguments.get("metadataPrefix", "")
        if item is None:
            raise Fault("idDoesNotExist", "no such item")
        if prefix not in PREFIXES:
            raise Fault("cannotDisseminateFormat", prefix)
        return f"<GetRecord>{element.record(item, prefix, self.form)}</GetRecord>"

    def formats(self, call: Call) -> str:
        del call
        return element.formats(PREFIXES)

    def sets(self, call: Call) -> str:
        del call
        return element.sets(SETS)


Before = Callable[[Provider, Call], None]
OfPage = Callable[[Provider, Call, Page], Page]
OfAnswer = Callable[[Provider, Call, Answer], Answer]
_VERBS = {
    "Identify": Provider.identify,
    "GetRecord": Provider.record,
    "ListMetadataFormats": Provider.formats,
    "ListSets": Provider.sets,
}
