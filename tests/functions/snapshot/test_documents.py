"""Documents of templates: their members as columns are what a reader of the whole gets."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.snapshot import documents
from tests.extent import examples

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
    st.sets(st.sampled_from(documents.MEMBERS), min_size=1),
)
def test_members_are_those_of_the_whole_document(
    given_: list[dict[str, object] | None], names: set[str]
) -> None:
    texts = [None if one is None else json.dumps(one, ensure_ascii=False) for one in given_]
    whole = [{} if one is None else documents.read("template", one) for one in texts]
    found = documents.read_members(texts, sorted(names))
    assert found == {name: [one.get(name) for one in whole] for name in sorted(names)}


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"handle": }'])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        documents.read_members([text], ["handle"])
    with pytest.raises(ValueError):
        documents.read("template", text)
