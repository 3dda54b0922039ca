"""Pages are known by their first bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.filesets.download import api


@pytest.mark.parametrize(
    ("kind", "first", "is_it"),
    [
        ("text/html", b"<!doctype HTML>", True),
        ("text/html", b"\xef\xbb\xbf \n<html>", True),
        ("text/html", b"<script>1</script>", True),
        ("text/html", b"a,b\n1,2", False),
        ("text/html", b"PK\x03\x04", False),
        ("text/html", b"", True),
        (None, b"", False),
        ("application/zip", b"<HTML lang=en>", True),
        ("application/zip", b"<script>", False),
        ("application/xml", b"<?xml version='1.0'?><data/>", False),
        ("application/xml", b"<?xml version='1.0'?>\n<html xmlns='x'>", True),
        ("image/svg+xml", b"<svg>", False),
        (None, b"<htmlish>", False),
    ],
)
def test_a_page_is_known_by_its_first_bytes(kind: str | None, first: bytes, is_it: bool) -> None:
    assert api.is_page(kind, first) is is_it


@settings(deadline=None)
@given(st.binary(max_size=2000), st.sampled_from([None, "text/html", "text/csv"]))
def test_any_bytes_are_a_page_or_none(data: bytes, kind: str | None) -> None:
    assert api.is_page(kind, data) in (True, False)
    assert api.blocks_robots({}, data) in (True, False)
