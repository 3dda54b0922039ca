"""Checks of single answers: HTTP, the envelope, and the elements of each verb. Pure."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from xml.etree.ElementTree import Element

from builder.check.checks import CheckCard, read_table
from builder.check.reply import DECLARATION, OAI, OaiReply, local, text
from builder.http.limits import find_wish
from functions.oai.request import CODES, UNREADABLE
from functions.snapshot.instant import from_datestamp

_SCHEMA = f"{OAI} {OAI}OAI-PMH.xsd"
_INSTANCE = "{http://www.w3.org/2001/XMLSchema-instance}"
_LONGEST_WAIT = 3600
_SLOWEST, _LARGEST = 60.0, 10_000_000
_AHEAD = timedelta(minutes=10)
"""How far clocks may differ."""
_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,80})", re.IGNORECASE)
_MEDIA = re.compile(r"text/xml\s*(;\s*charset\s*=\s*\"?utf-?8\"?\s*)?;?", re.IGNORECASE)
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_VERSION = re.compile(rb"version\s*=\s*[\"']1\.0[\"']")
_ENCODING = re.compile(rb"encoding\s*=\s*[\"']([^\"']*)[\"']")
_SCHEME = f"{OAI}oai-identifier"
_DOMAIN = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*(?:\.[a-zA-Z][a-zA-Z0-9-]*)+")
_EMAIL = re.compile(r"[^\s@:<>]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]{2,}")
GRANULARITIES = {"YYYY-MM-DD": 10, "YYYY-MM-DDThh:mm:ssZ": 20}
"""Granularities (section 4.2), and the length of their dates."""


def judge_http(card: CheckCard, reply: OaiReply, now: datetime) -> bool:
    """Judge how a request was answered; return whether there is an answer of OAI-PMH."""
    exchange = reply.exchange
    hold = partial(card.hold, where=exchange.verb, request=reply.number)
    slow = exchange.code in ("no-answer", "too-slow", "too-long")
    hold("H10", not slow and exchange.seconds < _SLOWEST, f"{exchange.seconds:.0f} s")
    hold("H13", exchange.code != "too-large", exchange.trouble)
    hold("H14", exchange.size <= _LARGEST, f"{exchange.size:,} bytes")
    hold("H06", not exchange.lost_query, "the Location of a redirect has no arguments")
    if not exchange.lost_query:
        hold("H16", not exchange.moved, "a redirect for good")
    if slow or exchange.code == "too-large":
        return False
    if exchange.code == "content-coding":
        return hold("H08", False, exchange.trouble)
    coded = f"Content-Encoding: {exchange.coded or 'none'}, and the body is otherwise"
    hold("H08", not exchange.mislabelled, coded)
    if exchange.status == 200:
        hold("H15", not exchange.failures, f"{exchange.failures} attempts failed")
    status = f"status {exchange.status}" if exchange.status else exchange.trouble
    if reply.is_challenge:
        title = _TITLE.search(exchange.body[:20_000])
        shown = f"a page {title[1]!r}" if title else f"{exchange.size:,} bytes"
        return hold("H02", False, f"{status}: {shown}")
    card.applied |= {"H02", "H05"}
    if exchange.status in (429, 503) and reply.page is None:
        wish = find_wish(exchange.fields, exchange.status, now.timestamp())
        seen = "no Retry-After" if wish is None else f"Retry-After asks for {wish:,.0f} s"
        if not hold("H05", wish is not None and wish <= _LONGEST_WAIT, f"{status}, {seen}"):
            return False
    is_read = reply.page is not None or reply.root is not None
    if exchange.status != 200 and is_read:
        hold("H03", reply.page is None or not reply.page.errors, f"{status}: {reply.codes}")
    else:
        hold("H03", True)
        whole = exchange.status == 200 and not exchange.code and exchange.body
        if not hold("H01", whole, f"{status}, {exchange.size:,} bytes"):
            return False
    if exchange.fields:
        media = exchange.fields.get("content-type", "")
        right = _MEDIA.fullmatch(media) or not is_read
        hold("H04", right, f"Content-Type: {media or 'none'}")
    return True


def judge_envelope(card: CheckCard, reply: OaiReply, base_url: str, now: datetime) -> None:
    """Judge an answer's XML, and what surrounds its content."""
    exchange = reply.exchange
    hold = partial(card.hold, where=exchange.verb, request=reply.number)
    declaration, is_wide = DECLARATION.match(exchange.body), exchange.body[:2] in _WIDE
    if reply.root is not None:
        hold("E03", declaration or is_wide, f"it begins with {exchange.body[:40]!r}")
        hold("E02", not is_wide, "UTF-16")
    if declaration:
        encoding = _ENCODING.search(declaration[0])
        utf8 = encoding is None or encoding[1].lower() in (b"utf-8", b"utf8")
        version = _VERSION.search(declaration[0])
        hold("E02", utf8 and version, declaration[0].decode("utf-8", "replace"))
    if not hold("E01", not reply.fault, reply.fault) or reply.root is None:
        if not reply.fault:
            hold("E04", False, f"it is no OAI-PMH: {exchange.body[:60]!r}")
        return
    root = reply.root
    hold("E04", root.tag == f"{{{OAI}}}OAI-PMH", f"the root is {root.tag}")
    location = " ".join(root.get(f"{_INSTANCE}schemaLocation", "").split())
    hold("E05", location.startswith(_SCHEMA), f"xsi:schemaLocation is {location!r}")
    parts = {local(element): element for element in root}
    date = text(parts.get("responseDate"))
    moment = from_datestamp(date) if _SECOND.fullmatch(date) else None
    if hold("E06", moment, f"responseDate is {date!r}") and moment:
        hold("E07", moment <= now + _AHEAD, f"responseDate is {date}, and it is {now:%FT%TZ}")
    request = parts.get("request")
    named = not base_url or text(request) == base_url
    hold("E08", named, f"request is {text(request)!r}, baseURL {base_url!r}")
    attributes = {} if request is None else dict(request.attrib)
    if UNREADABLE & {*reply.codes}:
        hold("A14", not attributes, f"request has {_list_pairs(attributes)}")
    elif request is not None:
        sent = dict(exchange.arguments)
        seen = f"request has {_list_pairs(attributes)}; sent were {_list_pairs(sent)}"
        hold("E09", attributes == sent, seen)
    codes = [element.get("code", "") for element in root if local(element) == "error"]
    for code in codes:
        hold("E11", code in CODES, f"the error {code!r}")
    if codes:
        hold("A15", all(text(e) for e in root if local(e) == "error"), f"{codes[0]} says nothing")
    hold("E12", not codes or reply.child() is None, f"the error {', '.join(codes)} and content")
    for fault in _structure_faults(root):
        hold("E10", False, fault)
    card.applied.add("E10")
    for record in root.iter(f"{{{OAI}}}record"):
        header, *rest = record or (None,)
        if header is not None and header.get("status") == "deleted":
            identifier = text(header.find(f"{{{OAI}}}identifier"))
            seen = f"it has {', '.join(map(local, rest))}"
            card.hold("X03", not rest, seen, identifier, reply.number)


def _list_pairs(pairs: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in pairs.items()) or "no attributes"


def _structure_faults(element: Element) -> Iterator[str]:
    """Yield what in an element is not as the schema says, down to foreign content."""
    name = local(element)
    row = read_table("elements.toml").get(name, {})
    for attribute in element.attrib.keys() - {*row.get("attributes", ())}:
        if not (row.get("any_attributes") or attribute.startswith(_INSTANCE)):
            yield f"{name} has the attribute {attribute}"
    if name == "header" and element.get("status", "deleted") != "deleted":
        yield f"status of a header is {element.get('status')!r}"
    children = [local(child) for child in element]
    if row.get("foreign"):
        if len(children) > 1 or (name != "metadata" and not children):  # metadata: see R103
            yield f"{name} has {len(children)} elements"
        return
    if "children" not in row:
        if children:
            yield f"{name} has elements: {' '.join(children[:5])}"
        return
    if not re.fullmatch(row["children"], "".join(f"{child} " for child in children)):
        yield f"{name} has {' '.join(dict.fromkeys(children)) or 'no elements'}"
    if (element.text or "").strip() or any((child.tail or "").strip() for child in element):
        yield f"{name} has text"
    for child in element:
        if child.tag.rpartition("}")[0] != element.tag.rpartition("}")[0]:
            yield f"{name} has {child.tag}, of another namespace"
        yield from _structure_faults(child)


def judge_identify(card: CheckCard, reply: OaiReply, base_url: str) -> Mapping[str, str]:
    """Judge Identify, and return its fields."""
    row = dict(reply.page.rows[0]) if reply.page and reply.page.rows else {}

    def hold(check: str, right: object, name: str) -> bool:
        return card.hold(check, right, f"{name} is {row.get(name, '')!r}", request=reply.number)

    if not base_url.startswith("file:"):
        own = row.get("baseURL", "")
        seen = f"baseURL is {own!r}, and {base_url!r} was asked"
        card.hold("I01", own == base_url, seen, request=reply.number)
    hold("I02", row.get("protocolVersion") == "2.0", "protocolVersion")
    emails = reply.page.emails if reply.page else ()
    for email in emails or ("",):
        right = _EMAIL.fullmatch(email) and not email.endswith("@localhost")
        card.hold("I03", right, f"adminEmail is {email!r}", request=reply.number)
    granularity = row.get("granularity", "")
    if hold("I05", granularity in GRANULARITIES, "granularity"):
        earliest = row.get("earliestDatestamp", "")
        fits = from_datestamp(earliest) and len(earliest) == GRANULARITIES[granularity]
        hold("I04", fits, "earliestDatestamp")
    hold("I06", row.get("deletedRecord") in ("no", "transient", "persistent"), "deletedRecord")
    elements = [] if reply.root is None else [*reply.root.iter()]
    row |= {local(e): text(e) for e in elements if local(e) == "repositoryIdentifier"}
    schemes = [element for element in elements if local(element) == "oai-identifier"]
    card.hold("I07", len(schemes) <= 1, f"{len(schemes)} schemes", request=reply.number)
    for scheme in schemes:
        domain = text(scheme.find(f"{{{_SCHEME}}}repositoryIdentifier"))
        seen = f"{scheme.tag}: {domain!r}"
        card.hold("I07", _DOMAIN.fullmatch(domain), seen, request=reply.number)
    return row
