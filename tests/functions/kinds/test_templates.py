"""Documents of templates: plain text without tags, and members that are those of the whole."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.kinds import FILESET, TEMPLATE
from functions.kinds.templates.markup import plain_text
from tests.extent import examples


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("<i>On</i> <b class='x'>Rugs</b><br/>here", "On Rugs here"),
        ("<p>On</p><p>Rugs</p>", "On Rugs"),
        ("One<br>two</P>three<LI>four", "One two three four"),
        (
            "<jats:p>On <jats:italic>Rugs</jats:italic></jats:p><jats:p>Here</jats:p>",
            "On Rugs Here",
        ),
        ('<a href="https://example.org/?a=1&amp;b=2" target=_blank>Here</a>.', "Here."),
        ("Josef Kova&#269;, Jos&eacute;, Arbeitsmarkt&#x2D;", "Josef Kovač, José, Arbeitsmarkt-"),
        ("D&amp;ouml;ring &amp;amp;amp; Co", "Döring & Co"),
        ("&lt;p&gt;On&lt;/p&gt;&amp;lt;p&amp;gt;Rugs", "On Rugs"),
        ("Two&nbsp;words", "Two words"),
        ("AT&T, R&D; M&A & S&P500", "AT&T, R&D; M&A & S&P500"),
        ("H<sub>2</sub>O<!-- water -->", "H2O"),
        ("a < b and c > d", "a < b and c > d"),
        ("if a <b and c> d", "if a <b and c> d"),
        ("p<0.05, p&lt;0.01, x<y>z", "p<0.05, p<0.01, x<y>z"),
        ("<x> stays", "<x> stays"),
        ("&#0;&#xD800;&#9999999;", "\ufffd\ufffd\ufffd"),
    ],
)
def test_plain_text_has_no_tags_and_no_entities(written: str, text: str) -> None:
    assert plain_text(written) == text
    assert plain_text(text) == text


_PIECES = st.lists(
    st.sampled_from(["<", ">", "&", ";", "amp;", "lt;", "p", "b", " ", "/", "#38", "=", '"', "a"])
)


@settings(max_examples=examples(200), deadline=None)
@given(_PIECES.map("".join))
def test_plain_text_ends_for_any_text(text: str) -> None:
    assert len(plain_text(text)) <= len(text)


def test_only_the_values_of_a_document_are_cleaned() -> None:
    url = "https://example.org/?a=1&amp;b=<b>"
    document = {
        "handle": "RePEc:aaa:bbbbbb:a&amp;b",
        "text": "Title: A <b>title</b> &amp;",
        "fields": {
            "title": ["A <b>title</b> &amp;amp; more", "<p></p>", 7],
            "file": [{"url": [url], "restriction": ["<i>No</i>"]}],
            "author": [{"name": ["M&uuml;ller"], "homepage": [url]}],
            "paper-handle": ["RePEc:aaa:bbbbbb:a&amp;b"],
        },
        "journal": "A &amp; B",
        "provider": ["Kova&#269;"],
        "series_name": None,
    }
    found = TEMPLATE.read(json.dumps(document))
    assert found == {
        **document,
        "fields": {
            "title": ["A title & more", 7],
            "file": [{"url": [url], "restriction": ["No"]}],
            "author": [{"name": ["Müller"], "homepage": [url]}],
            "paper-handle": ["RePEc:aaa:bbbbbb:a&amp;b"],
        },
        "journal": "A & B",
        "provider": ["Kovač"],
        "gathered": None,
    }
    computed = {"access": None, "versions": None}
    assert FILESET.read('{"title": "<b>"}') == {"title": "<b>", **computed}


_TEXTS = st.text(st.sampled_from('ab<>&;p/ "\\é\U0001f600'), max_size=8)
_VALUES = st.dictionaries(_TEXTS, st.lists(_TEXTS, max_size=2), max_size=3)
_DOCUMENTS = st.fixed_dictionaries(
    {"handle": _TEXTS, "text": _TEXTS},
    optional={
        "fields": _VALUES,
        "journal": st.none() | _TEXTS,
        "tist": st.integers(0, 9),
        "x": _TEXTS,
    },
)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.none() | _DOCUMENTS, max_size=4),
    st.sets(st.sampled_from([column.name for column in TEMPLATE.columns]), min_size=1),
)
def test_members_are_those_of_the_whole_document(
    given_: list[dict[str, object] | None], names: set[str]
) -> None:
    texts = [None if one is None else json.dumps(one, ensure_ascii=False) for one in given_]
    whole = [{} if one is None else TEMPLATE.read(one) for one in texts]
    found = TEMPLATE.read_members(texts, sorted(names))
    assert found == {name: [one.get(name) for one in whole] for name in sorted(names)}


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"handle": }'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        TEMPLATE.read_members([text], ["handle"])
    with pytest.raises(ValueError):
        TEMPLATE.read(text)
