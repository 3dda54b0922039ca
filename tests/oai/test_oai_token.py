"""Resumption tokens: there and back, and nothing but what this repository gave."""

import base64
import zlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.oai.errors import OAIError
from functions.oai.place import Place
from functions.oai.token import Token

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
        place = Place(draw(st.integers(0, 10**9)), draw(st.integers(0, 2)), draw(_SPEC))
        return Token(verb="ListSets", after=place.to_text(), **common)
    start, end = draw(_SPANS)
    return Token(
        verb=draw(st.sampled_from(["ListRecords", "ListIdentifiers"])),
        prefix=draw(_LEVEL),
        set=draw(st.none() | _SPEC),
        start=start,
        end=end,
        position=draw(_COUNT),
        **common,
    )


TOKEN = Token(
    verb="ListRecords", snapshot=7, cursor=1000, size=5000, prefix="oai_dc", position=1001
)


def refused(text: str, verb: str = "ListRecords") -> bool:
    with pytest.raises(OAIError) as caught:
        Token.from_text(text, verb)
    return caught.value.code == "badResumptionToken"


def forged(text: str) -> str:
    data = text.encode()
    raw = zlib.crc32(data).to_bytes(4, "big") + data
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@given(tokens())
def test_a_token_comes_back_as_it_went(token):
    text = token.to_text()
    assert Token.from_text(text, token.verb) == token
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert text == replace(token).to_text()


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


@given(tokens())
def test_a_token_of_another_verb_is_bad(token):
    for verb in {"ListRecords", "ListIdentifiers", "ListSets"} - {token.verb}:
        assert refused(token.to_text(), verb)


@given(
    st.text()
    | st.text("ABCabc123-_")
    | st.binary().map(lambda b: base64.urlsafe_b64encode(b).decode())
)
def test_noise_is_bad_and_nothing_else(text):
    assert refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "1r 7 1000 5000 1001   oai_dc  x",  # a set to go on behind, in a list of records
        "2r 7 1000 5000 1001   oai_dc  ",  # a later version
        "1x 7 1000 5000 1001   oai_dc  ",
        "1 7 1000 5000 1001   oai_dc  ",
        "1r 0 1000 5000 1001   oai_dc  ",
        "1r -7 1000 5000 1001   oai_dc  ",
        "1r 07 1000 5000 1001   oai_dc  ",
        "1r 7 0 5000 1001   oai_dc  ",
        "1r 7 5000 5000 1001   oai_dc  ",
        "1r 7 5001 5000 1001   oai_dc  ",
        "1r 7 1000 5000 0   oai_dc  ",
        "1r 7 1000 9999999999999999999 1001   oai_dc  ",
        "1r 7 1000 99999999999999999999999999 1001   oai_dc  ",
        "1r 7 1000 5000 1001 999999999999  oai_dc  ",
        "1r 7 1000 5000 1001 9999999999999999  oai_dc  ",
        "1r 7 1000 5000 1001 100 99 oai_dc  ",
        "1r 7 1000 5000 1001 -0 99 oai_dc  ",
        "1r 7 1000 5000 1001   oai<dc  ",
        "1r 7 1000 5000 1001     ",
        "1r 7 1000 5000 1001   oai_dc a::b ",
        "1r 7 1000 5000 1001   oai_dc ",
        "1s 7 1000 5000 1   a  ",
        "1s 7 1000 5000 0    x a",
        "1s 7 1000 5000 0     ",
        "1s 7 1000 5000 0     a:",
        "",
    ],
)
def test_a_forged_token_is_bad(text):
    assert refused(forged(text), "ListSets" if text.startswith("1s") else "ListRecords")


def test_the_forger_of_these_tests_can_forge():
    assert Token.from_text(forged("1r 7 1000 5000 1001   oai_dc  "), "ListRecords") == TOKEN


def test_a_token_of_any_length_is_bad_at_once():
    assert refused("A" * 1_000_000)
