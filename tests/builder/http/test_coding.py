"""Content codings are undone whatever the pieces, and fail for what is broken."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.http import responses
from builder.http.errors import FetchError

FORMS = {"gzip": 31, "deflate": 15, "raw": -15}
BODIES = st.binary(max_size=2000) | st.integers(0, 600_000).map(lambda n: b"\0" * n)


def packed(body: bytes, form: str) -> bytes:
    return zlib.compress(body, wbits=FORMS[form])


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@settings(deadline=None)
@given(st.lists(BODIES, min_size=1, max_size=3), st.integers(2, 5000))
def test_members_behind_each_other_are_one_body(bodies: list[bytes], size: int) -> None:
    data = b"".join(gzip.compress(body) for body in bodies)
    assert b"".join(responses.unpack(pieces(data, size))) == b"".join(bodies)
    filled = data + b"\0" * 100
    assert b"".join(responses.unpack(pieces(filled, size))) == b"".join(bodies)


@settings(deadline=None)
@given(BODIES, st.sampled_from(sorted(FORMS)), st.integers(2, 5000))
def test_every_form_is_read(body: bytes, form: str, size: int) -> None:
    found = list(responses.unpack(pieces(packed(body, form), size)))
    assert b"".join(found) == body
    assert all(len(some) <= 1 << 18 for some in found)


@settings(deadline=None)
@given(BODIES, st.sampled_from(["gzip", "deflate"]), st.data())
def test_what_breaks_off_is_told(body: bytes, form: str, data: st.DataObject) -> None:
    whole = packed(body, form)
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(FetchError) as error:
        list(responses.unpack([whole[:cut]]))
    assert error.value.code == "content-coding"


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_anything_is_read_or_told(data: bytes) -> None:
    with suppress(FetchError):
        list(responses.unpack([data]))


@settings(deadline=None)
@given(BODIES, st.integers(0, 3000))
def test_no_more_is_unpacked_than_may_be(body: bytes, most: int) -> None:
    headers = {"content-encoding": "gzip"}
    data = [packed(body, "gzip")]
    if len(body) <= most:
        assert responses.read_body(headers, data, most) == body
    else:
        with pytest.raises(FetchError) as error:
            responses.read_body(headers, data, most)
        assert error.value.code == "too-large"
    assert body.startswith(responses.read_start(headers, data, most)[:most])


@pytest.mark.parametrize("name", ["", "identity", "Identity", "aws-chunked", "UTF-8"])
def test_what_is_no_coding(name: str) -> None:
    assert responses.content_coding({"content-encoding": name}) is None
    assert responses.read_body({"content-encoding": name}, [b"ab", b"c"], 3) == b"abc"
