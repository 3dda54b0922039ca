"""MARC-8 is read as pymarc reads it, and UNIMARC by its own character sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymarc.marc8 import marc8_to_unicode

from builder.sources.records.forms.charsets import decode_marc8


@given(st.binary(max_size=20))
def test_each_text_is_what_pymarc_reads(data: bytes) -> None:
    try:
        expected = marc8_to_unicode(data, hide_utf8_warnings=True)
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            decode_marc8(data)
    else:
        assert decode_marc8(data) == expected


def test_letters_precede_their_accents() -> None:
    assert decode_marc8(b"g\xe8en\xe2eral \xe1\xe8a \xe8") == "g\xebn\xe9ral \xe0\u0308 "
    assert decode_marc8(b"\x1b(N\x6b\x4e\x1b(B!") == "\u041a\u043d!"
