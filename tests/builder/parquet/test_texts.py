"""Elements read by columns are those that a parser finds."""

from html import escape
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.harvest import page
from builder.harvest.version import DC
from builder.parquet.texts import list_values, read_elements, texts_of
from tests.extent import examples

_SPACES = " \n\t\x85\xa0\u1680\u2003\u2028\u202f\u3000"
_VALUES = st.text(
    st.one_of(st.sampled_from(_SPACES + "&<>'\"a;#"), st.characters(min_codepoint=32)), max_size=9
).map(lambda text: text.encode("utf-8", "ignore").decode().translate({0xFFFE: "", 0xFFFF: ""}))
_ELEMENTS = st.lists(st.tuples(st.sampled_from(DC), _VALUES), max_size=6)
_HEAD = '<record xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><all>'
_TAIL = "</all></metadata><about><dc:rights>no metadata</dc:rights></about></record>"


def _write(elements: list[tuple[str, str]]) -> str:
    texts = (f"<dc:{name}>{_escape(value)}</dc:{name}>\n" for name, value in elements)
    return f"{_HEAD}{''.join(texts)}{_TAIL}"


def _escape(value: str) -> str:
    """Escape as templates do."""
    return escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


def _read(texts: list[str]) -> list[dict[str, tuple[str, ...]]] | None:
    found = read_elements(texts_of([text.encode() for text in texts]), "dc", DC, "</metadata>")
    if found is None:
        return None
    columns = {name: list_values(values) for name, values in found.items()}
    assert all(len(values) == len(texts) for values in columns.values())
    return [
        {name: tuple(values[n]) for name, values in columns.items() if values[n] is not None}
        for n in range(len(texts))
    ]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(_ELEMENTS, min_size=1, max_size=5))
def test_plain_elements(records: list[list[tuple[str, str]]]) -> None:
    texts = [_write(elements) for elements in records]
    assert _read(texts) == [dict(page.record(text, 0, 0).dc) for text in texts]


@pytest.mark.parametrize(
    "odd",
    [
        '<dc:title xml:lang="cs">a</dc:title>',
        "<dc:title/>",
        "<dc:title >a</dc:title>",
        "<dc:title>a<b/></dc:title>",
        "<dc:title>a<dc:date>1</dc:date></dc:title>",
        "<dc:dates>1</dc:dates>",
        "<dc:other>1</dc:other>",
    ],
)
def test_others_need_a_parser(odd: str) -> None:
    text = f"{_HEAD}{odd}{_TAIL}"
    ElementTree.fromstring(text)
    assert _read([_write([("date", "2026")]), text]) is None
