"""The space of requests: good ones, and each way in which one can be wrong, hostile or odd."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote_from_bytes, quote_plus

from tests.functions.oai import values
from tests.functions.oai.client import event
from tests.functions.oai.protocol import FORM, VERBS, Ask
from tests.functions.oai.world import DATESTAMPS, PREFIXES, World, lists

Pairs = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Sent:
    """A request as the model reads it, and as it is handed over."""

    ask: Ask
    accepted: str = ""
    encoded: bool = False

    def event(self, method: str = "") -> dict[str, Any]:
        """Return the event; another method in place of its own where one is given."""
        ask = self.ask
        headers = {"accept-encoding": self.accepted}
        if ask.content_type:
            headers["content-type"] = ask.content_type
        body: str | None = None
        if ask.broken:
            body = "no base64!"
        encoded = self.encoded or ask.broken
        if not ask.broken and ask.body:
            try:
                text = ask.body.decode()
            except UnicodeDecodeError:  # what is no text comes in base64
                encoded = True
            body = base64.b64encode(ask.body).decode() if encoded else text
        return event(ask.query, method or ask.method, headers=headers, body=body, encoded=encoded)


def good(world: World) -> list[Pairs]:
    """Return requests that are answered, or are right but for what they ask about."""
    found: list[dict[str, str]] = [{"verb": verb} for verb in VERBS]
    names = [*sorted(r.identifier for r in world.description.records), "oai:example.org:none"]
    for name in names:
        found.append({"verb": "ListMetadataFormats", "identifier": name})
        found += [
            {"verb": "GetRecord", "identifier": name, "metadataPrefix": p} for p in PREFIXES[:3]
        ]
    for verb, arguments in lists(world.description):
        found += [{"verb": verb, **arguments}] * 2
    found += [{"verb": r.verb, "resumptionToken": t} for t, r in world.given.items()]
    return [[(k.encode(), v.encode()) for k, v in one.items()] for one in found]


def _set(pairs: Pairs, name: bytes, value: bytes) -> None:
    pairs[:] = [(k, v) for k, v in pairs if k != name] + [(name, value)]


def _listing(pick: Random, pairs: Pairs) -> None:
    """Make it a request for a list of records from its beginning."""
    rest = [(k, v) for k, v in pairs if k not in (b"verb", b"identifier", b"resumptionToken")]
    verb = pick.choice([b"ListRecords", b"ListIdentifiers"])
    if not any(k == b"metadataPrefix" for k, _ in rest):
        rest.append((b"metadataPrefix", b"oai_dc"))
    pairs[:] = [(b"verb", verb), *rest]


def _verbs(pick: Random, pairs: Pairs, world: World) -> None:
    how = pick.randint(0, 5)
    others = [(k, v) for k, v in pairs if k != b"verb"]
    if how == 0:
        pairs[:] = others
    elif how == 1:
        again = pick.choice([b"Identify", b"", b"nope", dict(pairs).get(b"verb", b"")])
        pairs.append((b"verb", again))
    elif how == 2:
        pairs[:] = [(b"verb", pick.choice([v.encode() for v in VERBS])), *others]
    elif how == 3:
        name = pick.choice([b"Verb", b"VERB", b"verb ", b" verb", b"verbs", b"ver"])
        pairs[:] = [(name, v) if k == b"verb" else (k, v) for k, v in pairs]
    else:
        pairs[:] = [(b"verb", pick.choice(values.ALIEN_VERBS)), *others]


def _arguments(pick: Random, pairs: Pairs, world: World) -> None:
    how, place = pick.randint(0, 7), pick.randint(0, 5)
    name, value = pairs[place % len(pairs)]
    if how == 0:
        pairs.remove((name, value))
    elif how == 1:
        pairs.append((name, value))
    elif how == 2:
        pairs.append((name, pick.choice([b"", b"oai_dc", b"x", b"2026-03-01"])))
    elif how == 3:
        pairs[place % len(pairs)] = (name, b"")
    elif how == 4:
        pairs.append((pick.choice(values.ALIEN_NAMES), pick.choice([b"", b"1"])))
    elif how == 5:
        more = pick.choice(pairs_of(world))
        pairs.append(more[-1])
    elif how == 6:
        pairs[place % len(pairs)] = (pick.choice(values.ALIEN_NAMES), value)
    else:
        pairs[place % len(pairs)] = (name.swapcase(), value)


def _hostile(pick: Random, pairs: Pairs, world: World) -> None:
    place, how = pick.randint(0, 5) % len(pairs), pick.randint(0, 3)
    hostile = pick.choice([*values.HOSTILE, pick.randbytes(pick.randint(1, 12))])
    name, value = pairs[place]
    if how == 0:
        pairs[place] = (name, hostile)
    elif how == 1:
        pairs.append((hostile, value))
    else:
        cut = pick.randint(0, len(value))
        pairs[place] = (name, value[:cut] + hostile + value[cut:])


def _dates(pick: Random, pairs: Pairs, world: World) -> None:
    _listing(pick, pairs)
    for name in pick.choice([[b"from"], [b"until"], [b"from", b"until"]]):
        how = pick.randint(0, 9)
        if how < 3:
            text = pick.choice(DATESTAMPS)
        else:
            text = pick.choice(values.ODD_DAYS if how in (3, 4) else values.DAYS)
            if how in (5, 6):
                text += pick.choice(values.ODD_TIMES)
            elif how in (4, 7):
                text += pick.choice(values.TIMES)
        _set(pairs, name, text.encode())


def _selection(pick: Random, pairs: Pairs, world: World) -> None:
    own = sorted(world.description.sets) or ["mime"]
    how = pick.randint(0, 4)
    if how < 2 or how == 4:
        _listing(pick, pairs)
        spec = pick.choice(pick.choice([[s.encode() for s in own], values.ALIEN_SETS]))
        _set(pairs, b"set", spec)
    if how in (2, 4):
        if how == 2 and not any(k == b"metadataPrefix" for k, _ in pairs):
            _listing(pick, pairs)
        known = [p.encode() for p in PREFIXES]
        prefix = pick.choice(pick.choice([known, values.ALIEN_PREFIXES]))
        _set(pairs, b"metadataPrefix", prefix)
    if how == 3:
        name = pick.choice(values.IDENTIFIERS)
        prefix = pick.choice([b"oai_dc", b"simple", b"ghost", b"marc"])
        pairs[:] = pick.choice(
            [
                [(b"verb", b"ListMetadataFormats"), (b"identifier", name)],
                [(b"verb", b"GetRecord"), (b"identifier", name), (b"metadataPrefix", prefix)],
            ]
        )


def _tokens(pick: Random, pairs: Pairs, world: World) -> None:
    given = sorted(world.given) or ["MXI6MQ"]
    token = pick.choice(given).encode()
    rest = world.given.get(token.decode())
    verb = rest.verb.encode() if rest else b"ListRecords"
    how, place = pick.randint(0, 13), pick.randint(0, 199) % len(token)
    bit = bytes([token[place] ^ 1 << pick.randint(0, 7)])
    other = pick.choice(given).encode()
    token = [
        token,
        token,
        token[:place] + bit + token[place + 1 :],
        token[:place],
        token[place:],
        token[:place] + token[place + 1 :],
        token[:place] + token[place : place + 1] + token[place:],
        token.swapcase(),
        token[::-1],
        token + b"=" * (place % 4 + 1),
        token[:place] + other[place:],
        quote_plus(quote_from_bytes(token[:1], safe="") + "%2D").encode() + token[1:],
        b" " * (place % 2) + token + b"\n" * (1 - place % 2),
        token + pick.choice(values.HOSTILE),
    ][how]
    pairs[:] = [(b"verb", verb), (b"resumptionToken", token)]
    if how == 1:
        beside = pick.randint(0, 7)
        verbs = [b"ListRecords", b"ListIdentifiers", b"ListSets", b"GetRecord", b"Identify"]
        if beside < 5:
            pairs[0] = (b"verb", verbs[beside])
        else:
            more = [(b"metadataPrefix", b"oai_dc"), (b"set", b"mime"), (b"resumptionToken", token)]
            pairs.append(more[beside - 5])


def _nothing(pick: Random, pairs: Pairs, world: World) -> None:
    """A request stays as it is."""


_CHANGES = {
    "verbs": _verbs,
    "arguments": _arguments,
    "hostile": _hostile,
    "dates": _dates,
    "selection": _selection,
    "tokens": _tokens,
    "http": _nothing,
}
SUBJECTS = (*_CHANGES, "anything")
_GOOD: dict[int, list[Pairs]] = {}


def pairs_of(world: World) -> list[Pairs]:
    """Return `good`, made once for each world."""
    if id(world) not in _GOOD:
        _GOOD[id(world)] = good(world)
    return _GOOD[id(world)]


def request(pick: Random, world: World, subject: str) -> Sent:
    """Pick a request of the space: a good one, mostly changed in ways of the subject."""
    verb = pick.choice([*VERBS]).encode()
    right = [pairs for pairs in pairs_of(world) if pairs[0] == (b"verb", verb)]
    pairs = list(pick.choice(right))
    changes = [subject]
    if subject == "anything":
        changes = pick.choices(SUBJECTS[:-1], k=pick.randint(0, 3))
    elif pick.randint(0, 4) == 0:
        changes = []
    for change in changes:
        if pairs:
            _CHANGES[change](pick, pairs, world)
    if pick.randint(0, 3) == 0:
        pairs.reverse()
    text = _written(pairs, pick.randint(0, 3))
    if subject in ("hostile", "anything") and changes and pick.randint(0, 2) == 0:
        cut = pick.randint(0, min(len(text), 60))
        text = text[:cut] + pick.choice(values.FRAGMENTS) + text[cut:]
    return _sent(pick, text, subject)


def _written(pairs: Sequence[tuple[bytes, bytes]], style: int) -> str:
    """Return pairs as a form, in one of the ways in which clients write them."""
    if style == 0:
        return "&".join(f"{quote_from_bytes(k)}={quote_from_bytes(v)}" for k, v in pairs)
    if style == 1:
        return "&".join(f"{quote_plus(k)}={quote_plus(v)}" for k, v in pairs)
    if style == 2:
        return "&".join(f"{_hex(k)}={_hex(v)}" for k, v in pairs)
    safe = "!\"#$'()*,-./:;<>?@[\\]^_`{|}~ "
    return "&".join(
        f"{quote_from_bytes(k, safe=safe)}={quote_from_bytes(v, safe=safe)}" for k, v in pairs
    )


def _hex(raw: bytes) -> str:
    return "".join(f"%{b:02x}" for b in raw)


def _sent(pick: Random, text: str, subject: str) -> Sent:
    raw = text.encode("utf-8", "surrogatepass")
    accepted = pick.choice(["", "", "gzip"])
    if subject not in ("http", "anything"):
        if pick.randint(0, 2):
            return Sent(Ask("GET", text), accepted)
        return Sent(Ask("POST", "", raw, FORM), accepted, pick.random() < 0.5)
    media = pick.choice([FORM, pick.choice(values.MEDIA)])
    how = pick.randint(0, 9)
    cut = pick.randint(0, len(text))
    encoded = pick.random() < 0.5
    head = text[:cut] + "&" * (how == 5)
    tail = text[cut:].encode("utf-8", "surrogatepass")
    return [
        Sent(Ask("GET", text, b"verb=Identify", FORM), accepted),  # a body that GET does not have
        Sent(Ask("HEAD", text), accepted),
        Sent(Ask("HEAD", text, raw, media), accepted, encoded),
        Sent(Ask("POST", "", raw, media), accepted, encoded),
        Sent(Ask("POST", text, b"", media), accepted, encoded),
        Sent(Ask("POST", head, tail, FORM), accepted, encoded),
        Sent(Ask("POST", head, tail, media), accepted, encoded),
        Sent(Ask("POST", text, raw, FORM), accepted, encoded),
        Sent(Ask("POST", text, b"x", FORM, broken=True), accepted, True),
        Sent(Ask("POST", "", raw + b"&" + b"y" * pick.choice([0, 9, 70_000]), FORM)),
    ][how]
