"""Random requests of OAI-PMH, and what the answers of two programs have in common.

Page borders, tokens, sizes and dates of answers may differ, so that lists are compared whole.
"""

import gzip
import http.client
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus, urlsplit

from lxml import etree

from functions.http.http_message import Call
from functions.oai.application import Application
from tests.builder.conftest import World

OAI = "{http://www.openarchives.org/OAI/2.0/}"
FORM = "application/x-www-form-urlencoded"
LISTS = ("ListRecords", "ListIdentifiers")
VERBS = ("Identify", "ListMetadataFormats", "ListSets", "GetRecord", *LISTS)


@dataclass(frozen=True)
class HostAnswer:
    """An answer: status, headers by names in lower case, and the body without its coding."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Ask = Callable[[str, str, Mapping[str, str], bytes], HostAnswer]
"""Asks /oai of a program: method, query, headers, body."""


def unpack(headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a body without its coding."""
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" and body else body


def ask_application(application: Any, base: str) -> Ask:
    """Return how to ask what answers calls, at the base URL of a site."""
    host = base.removesuffix("/oai")

    def ask(method: str, query: str, headers: Mapping[str, str], body: bytes) -> HostAnswer:
        response = application.answer(Call(method, host, "/oai", query, headers, body))
        data = b"".join([response.body]) if response.body else b""
        lower = {name.lower(): value for name, value in response.headers.items()}
        return HostAnswer(response.status, lower, unpack(lower, data))

    return ask


def ask_server(url: str, path: str = "/oai") -> Ask:
    """Return how to ask a server at `url`."""
    parts = urlsplit(url)

    def ask(method: str, query: str, headers: Mapping[str, str], body: bytes) -> HostAnswer:
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        try:
            target = f"{path}?{query}" if query else path
            connection.request(method, target, body or None, dict(headers))
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        lower = {name.lower(): value for name, value in response.getheaders()}
        return HostAnswer(response.status, lower, unpack(lower, data))

    return ask


@dataclass(frozen=True)
class RequestMaker:
    """Makes requests for a world, from what is there and from what is not."""

    random: random.Random
    identifiers: list[str]
    sets: list[str]
    dates: list[str]
    prefixes: list[str]
    posts: bool = True

    def pairs(self) -> list[tuple[str, str]]:
        """Return the keys and values of a request; most are valid."""
        pick = self.random
        verb = pick.choice((*VERBS, "GetRecord", *LISTS, *LISTS))
        values: list[tuple[str, str]] = []
        if verb == "GetRecord" or (verb == "ListMetadataFormats" and pick.random() < 0.7):
            values.append(("identifier", pick.choice(self.identifiers)))
        if verb == "GetRecord" or verb in LISTS:
            values.append(("metadataPrefix", pick.choice(self.prefixes)))
        if verb in LISTS:
            if pick.random() < 0.4:
                values.append(("set", pick.choice(self.sets)))
            names = [name for name in ("from", "until") if pick.random() < 0.4]
            values += [(name, pick.choice(self.dates)) for name in names]
        if pick.random() < 0.08:
            values.append(("resumptionToken", pick.choice(BAD_TOKENS)))
            if pick.random() < 0.8 and verb in (*LISTS, "ListSets"):
                values = values[-1:]
        values.insert(pick.randint(0, len(values)), ("verb", verb))
        if pick.random() < 0.15:
            self._spoil(values)
        return values

    def _spoil(self, values: list[tuple[str, str]]) -> None:
        """Make a request invalid in one place or more."""
        pick = self.random
        for _ in range(pick.randint(1, 2)):
            at = pick.randrange(len(values))
            key, value = values[at]
            action = pick.randrange(6)
            if action == 0:
                values.append((key, pick.choice(("", value, "x"))))
            elif action == 1 and len(values) > 1:
                del values[at]
            elif action == 2:
                values[at] = (
                    key,
                    pick.choice(("", "\x00", "\x1f", "a\u0085b", "\ufffe", "\x7f", "<\"'&\t\n>")),
                )
            elif action == 3:
                values[at] = (
                    pick.choice(("__proto__", "toString", "Verb", "from", "until", "x<")),
                    value,
                )
            elif action == 4:
                values[at] = (
                    key,
                    pick.choice(
                        (" ", "..", "../..", "../router", "__proto__", "\U0001f41d" * 90, "%zz")
                    ),
                )
            else:
                values.append(("until", pick.choice(("2026-02-30", "2026-01-01", "0000-01-01"))))

    def write(self, pairs: list[tuple[str, str]]) -> tuple[str, str, dict[str, str], bytes]:
        """Return method, query, headers and body."""
        pick = self.random
        escape = pick.choice((quote_plus, quote, lambda text: quote(text, safe=":,/~'!()*")))
        text = "&".join(f"{escape(key)}={escape(value)}" for key, value in pairs)
        if pick.random() < 0.02:
            return "GET", text.replace("=", "=%zz%x", 1) + "&&x", {}, b""
        if self.posts and pick.random() < 0.15:
            cut = pick.choice((0, text.find("&") + 1))
            return "POST", text[: max(cut - 1, 0)], {"content-type": FORM}, text[cut:].encode()
        return "GET", text, {"accept-encoding": "gzip"} if pick.random() < 0.3 else {}, b""


BAD_TOKENS = (
    *("x", "r,oai_dc", "r,oai_dc,x", "r,nothing,1", "i,nothing,1", "s,0x", "s,-1", "s,99999"),
    *(
        "r,oai_dc,1,no:such",
        "i,oai_dc,1,no:such",
        "r,../../x,1",
        "s,../identify",
    ),
    *("r,oai_dc,1,../../all", "i,oai_dc,1,..", "r,oai_dc,1,,2001-01-01T00:00:00Z", "r,__proto__,1"),
    *("r,oai_dc,1\n", "r,oai_dc,1,,2026-01-01T00:00:02Z,", "<&>\"'", "r,oai_dc,1,%2e%2e"),
)
HANDLES = ("RePEc:lip:wpaper:2026-02", "oai:REPEC:lip:WPaper:2026-03", "RePEc:lip:none:1")
"""Names of templates besides their identifiers, the last one of none."""


def make_requests(world: World, seed: int, *, posts: bool = True) -> RequestMaker:
    """Return what makes requests for a world of `make_site_world`."""
    manifest = world.newest()
    identifiers = [record.identifier for record in world.listed()]
    stamps = [s.effective.strftime("%Y-%m-%dT%H:%M:%SZ") for s in manifest.sequences]
    odd = ["2025-12-31T23:59:59Z", "2026-01-01T00:30:00Z", "2026-01-01", "2026-01-02", "2031-01-01"]
    with world.views() as connection:
        del connection
    sets = ["domain", "domain:cz:example", "domain:cz:example:h3", "mime:text:html", "mime"]
    sets += [
        "collection:a!2Eb",
        "collection:a.b",
        "collection",
        "no:such",
        "..",
        ".",
        "domain:cz:h99",
    ]
    return RequestMaker(
        random.Random(seed),
        [*identifiers, *identifiers, *HANDLES, "oai:archive.example.org:none", "it's", "a:b c"],
        sets,
        [*stamps, *stamps, *odd],
        ["oai_dc", "oai_dc", "mods", "capture", "marc21", "x", "y", "amf", "none", "__proto__"],
        posts,
    )


@dataclass
class Seen:
    """What a request gives, whatever its pages: the parts that two programs must share."""

    status: int
    type: str
    codes: list[str]
    messages: list[str]
    request: dict[str, str]
    items: list[bytes] = field(default_factory=list)


def see(ask: Ask, method: str, query: str, headers: Mapping[str, str], body: bytes) -> Seen:
    """Return what a request gives, with all pages of a list that it begins."""
    answer = ask(method, query, headers, body)
    root = etree.fromstring(answer.body)
    seen = Seen(
        answer.status,
        answer.headers.get("content-type", ""),
        [e.get("code", "") for e in root.iter(f"{OAI}error")],
        [e.text or "" for e in root.iter(f"{OAI}error")],
        {str(k): str(v) for k, v in root.find(f"{OAI}request").attrib.items()},
    )
    verb = etree.QName(root[2]).localname
    for _ in range(500):
        seen.items += items(root)
        token = root.find(f"{OAI}*/{OAI}resumptionToken")
        if token is None or not token.text:
            return seen
        query = f"verb={verb}&resumptionToken={quote(token.text, safe='')}"
        root = etree.fromstring(ask("GET", query, {}, b"").body)
        if root.find(f"{OAI}error") is not None:
            raise AssertionError((query, etree.tostring(root)))
    raise AssertionError(f"the list has no end: {query}")


def items(root: etree._Element) -> Iterator[bytes]:
    """Yield the records, headers, sets or other contents of an answer, in canonical form."""
    for element in root[2]:
        if element.tag not in (f"{OAI}resumptionToken", f"{OAI}error"):
            element.tail = None
            yield etree.tostring(element, method="c14n")


_UNTOLD = {"noRecordsMatch", "cannotDisseminateFormat"}


def differences(ours: Ask, host: Ask, maker: RequestMaker, count: int) -> list[str]:
    """Return how the answers to random requests differ."""
    reports = []
    for _ in range(count):
        request = maker.write(maker.pairs())
        expected, got = see(ours, *request), see(host, *request)
        if expected.codes == got.codes and _UNTOLD & {*got.codes}:
            got.messages = expected.messages  # a folder does not tell apart why
        if expected != got:
            reports.append(f"{request}\n  server {expected}\n  host   {got}")
    return reports


def application_of(world: World) -> Ask:
    """Return how to ask `sheaf serve` over a world of `make_site_world`."""
    settings = world.configuration(SHEAF_PAGES_RECORDS="7")
    application = Application(world.repository(), settings, world.clock)
    return ask_application(application, "http://archive.example.org/oai")
