"""Resumption tokens: there and back, and nothing but what this repository gave."""

import base64
import zlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.oai.request import OAIError
from functions.oai.token import LONGEST, SetCursor, Token, _text
from functions.snapshot.manifest import UNSTAMPED, Manifest

_LEVEL = st.text("AZaz09-_.!~*'()", min_size=1, max_size=8)
_SPEC = st.lists(_LEVEL, min_size=1, max_size=4).map(":".join)
_WHEN = st.datetimes(
    datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), timezones=st.just(UTC)
).map(lambda d: d.replace(microsecond=0))
_SPANS = st.tuples(st.none() | _WHEN, st.none() | _WHEN).map(
    lambda s: s if None in s else tuple(sorted(s))
)
_COUNT = st.integers(1, 2**61)


@st.composite
def tokens(draw):
    cursor = draw(_COUNT)
    common = {"snapshot": draw(_COUNT), "cursor": cursor, "size": cursor + draw(_COUNT)}
    if draw(st.booleans()):
        place = SetCursor(draw(st.integers(0, 10**9)), draw(st.integers(0, 2)), draw(_SPEC))
        return Token(verb="ListSets", after=place.to_text(), namespace="a.cz", **common)
    start, end = draw(_SPANS)
    return Token(
        namespace="a.cz",
        verb=draw(st.sampled_from(["ListRecords", "ListIdentifiers"])),
        prefix=draw(_LEVEL),
        set=draw(st.none() | _SPEC),
        start=start,
        end=end,
        position=draw(_COUNT),
        **common,
    )


TOKEN = Token(
    namespace="a.cz",
    verb="ListRecords",
    snapshot=7,
    cursor=1000,
    size=5000,
    prefix="oai_dc",
    position=1001,
)


def refused(text: str, verb: str = "ListRecords") -> bool:
    with pytest.raises(OAIError) as caught:
        Token.from_text(text, verb, "a.cz")
    return caught.value.code == "badResumptionToken"


def forged(data: bytes) -> str:
    raw = zlib.crc32(data, zlib.crc32(b"a.cz")).to_bytes(4, "big") + data
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@given(tokens())
def test_a_token_comes_back_as_it_went(token):
    text = token.to_text()
    assert Token.from_text(text, token.verb, "a.cz") == token
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert text == replace(token).to_text()
    for verb in {"ListRecords", "ListIdentifiers", "ListSets"} - {token.verb}:
        assert refused(text, verb)


def test_an_ordinary_token_is_short():
    token = Token(
        verb="ListIdentifiers",
        snapshot=12345,
        cursor=149_000_000,
        size=150_000_000,
        prefix="oai_dc",
        position=987_654_321,
        set="collection:serials:harvest_november07",
        start=datetime(2026, 1, 1, tzinfo=UTC),
        end=datetime(2026, 12, 31, tzinfo=UTC),
    )
    assert len(token.to_text()) < 200


@given(tokens(), st.data())
def test_a_token_that_was_tampered_with_is_bad(token, data):
    text = token.to_text()
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters())
    changed = data.draw(
        st.sampled_from(
            [text[:place], text[place + 1 :], text[:place] + other + text[place:], text + "="]
        )
    )
    assert changed == text or refused(changed, token.verb)


@given(tokens(), st.integers(0, 3))
def test_spare_bits_make_no_second_token(token, bits):
    text = token.to_text()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet[alphabet.index(text[-1]) ^ bits]
    assert last == text[-1] or refused(text[:-1] + last, token.verb)


@given(
    st.text()
    | st.text("ABCabc123-_")
    | st.binary().map(lambda b: base64.urlsafe_b64encode(b).decode())
)
def test_noise_is_bad_and_nothing_else(text):
    assert refused(text)


def forged_by(**fields) -> str:
    """Return a token with a right checksum and fields that no answer has."""
    return _text(replace(TOKEN, **fields)._pack(), "a.cz")


START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "fields",
    [
        {"snapshot": 0},
        {"cursor": 0},
        {"cursor": 5000},
        {"cursor": 5001},
        {"position": 0},
        {"size": 2**63},
        {"size": 2**70},
        {"start": END, "end": START},
        {"prefix": "oai<dc"},
        {"prefix": ""},
        {"set": "a::b"},
        {"set": "a/b"},
        {"set": "," + "0" * 15},
        {"after": "1+x"},
        {"verb": "ListSets"},
        {"verb": "ListSets", "position": 0, "prefix": ""},
        {"verb": "ListSets", "position": 0, "prefix": "", "after": "1+a:"},
        {"verb": "ListSets", "position": 0, "prefix": "", "after": "a"},
        {"verb": "ListSets", "position": 0, "prefix": "", "after": "1,a"},
        {"verb": "ListSets", "position": 0, "prefix": "", "after": "01+a"},
        {"verb": "ListSets", "position": 0, "prefix": "", "after": "1+a", "set": "b"},
        {"verb": "ListSets", "position": 0, "prefix": "", "after": "1+a", "end": END},
        {"verb": "ListSets", "position": 1, "prefix": "", "after": "1+a"},
    ],
    ids=str,
)
def test_a_forged_token_is_bad(fields):
    assert refused(forged_by(**fields), fields.get("verb", "ListRecords"))


PACKED = TOKEN._pack()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"r",
        b"x" + PACKED[1:],
        PACKED[:1] + b"\x01" + PACKED[2:],  # another version
        PACKED + b"\0",
        PACKED[:-1],
        PACKED[:1] + b"\x82\0" + PACKED[2:],  # a number that is written longer than it is
        PACKED[:-2] + b"\x05\0",  # a set that is cut short
        b"r" + b"\xff" * 4000,
        PACKED[:6] + b"\xff" * 9 + b"\x7f" + PACKED[6:],
        PACKED.replace(b"oai_dc", b"oai_d\xc3"),
    ],
)
def test_a_forged_packing_is_bad(data):
    assert refused(forged(data))


def test_the_forgers_of_these_tests_can_forge():
    assert Token.from_text(forged(PACKED), "ListRecords", "a.cz") == TOKEN
    assert Token.from_text(forged_by(set="a:b"), "ListRecords", "a.cz") == replace(TOKEN, set="a:b")
    sets = {"verb": "ListSets", "position": 0, "prefix": "", "after": "1+a"}
    assert Token.from_text(forged_by(**sets), "ListSets", "a.cz").after == "1+a"


_LONG = st.integers(1, 300).flatmap(
    lambda n: st.lists(_LEVEL, min_size=n, max_size=n).map(":".join)
)


@given(tokens(), _LONG, st.lists(_SPEC, max_size=3))
def test_a_token_is_short_whatever_its_set(token, spec, others):
    is_place = token.verb == "ListSets"
    token = replace(token, **({"after": f"12={spec}"} if is_place else {"set": spec}))
    text = token.to_text()
    assert len(text) <= LONGEST < 200
    found = Token.from_text(text, token.verb, "a.cz")
    assert found.with_set([*others, spec]) == token
    assert found.to_text() == text
    if found.shortened:
        assert spec.startswith(found.shortened[0])
        with pytest.raises(OAIError, match="badResumptionToken"):
            found.with_set([s for s in others if s != spec])
    else:
        assert found == token


def test_a_set_of_the_usual_length_is_not_shortened():
    spec = "collection:serials:harvest_november07:topic!3Anews:regional:north"
    token = replace(TOKEN, set=spec, start=START, end=END, cursor=149_000_000, size=150_000_000)
    assert Token.from_text(token.to_text(), "ListRecords", "a.cz") == token


def test_a_token_of_any_length_is_bad_at_once():
    assert refused("A" * 1_000_000)


@given(tokens(), st.sampled_from(["", "b.cz", "a.c", "A.cz"]))
def test_a_token_of_another_repository_is_bad(token, namespace):
    with pytest.raises(OAIError, match="badResumptionToken"):
        Token.from_text(token.to_text(), token.verb, namespace)


_STORE = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(tokens(), st.lists(_STORE | st.just(""), min_size=2, max_size=2, unique=True))
def test_a_token_of_another_store_is_bad(token, stores):
    own, other = stores
    token = replace(token, store=own)
    text = token.to_text()
    assert Token.from_text(text, token.verb, "a.cz", own) == token
    assert len(text) == len(replace(token, store="").to_text())  # the id is not in it
    with pytest.raises(OAIError, match="badResumptionToken"):
        Token.from_text(text, token.verb, "a.cz", other)


@given(tokens(), st.integers(1, 2**61))
def test_an_earlier_id_is_good_for_the_snapshots_of_then(token, last):
    manifest = Manifest(last + 1, UNSTAMPED, "a.cz", (), {}, store="b" * 32, former=((last, ""),))
    text = token.to_text()
    if token.snapshot <= last:
        assert Token.of_store(text, token.verb, manifest) == token
    else:
        with pytest.raises(OAIError, match="badResumptionToken"):
            Token.of_store(text, token.verb, manifest)
        own = replace(token, store="b" * 32)
        assert Token.of_store(own.to_text(), token.verb, manifest) == own
