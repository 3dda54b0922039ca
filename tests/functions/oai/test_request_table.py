"""The table for routers has the same arguments and forms as the parser."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from functions.oai.request import VERBS
from functions.oai.request_table import request_table
from functions.snapshot import oai_name
from functions.snapshot.instant import from_datestamp

FORMS = {name: re.compile(pattern) for name, (pattern, _) in request_table()["forms"].items()}
DIGITS = st.text("0123456789-TZ:", max_size=20)
DATES = st.builds("{:04}-{:02}-{:02}".format, *(st.integers(0, n) for n in (9999, 13, 32)))


def fits(name: str, text: str) -> bool:
    return FORMS[name].fullmatch(text) is not None


@given(st.text("ab:/?#%[]@ 0.\x85\n\ufffd", max_size=12) | st.text(max_size=9))
@example("a://b c")
@example(" //x")
@example("a:1//b")
@example("//u:p@h:80/p?q#f")
@example("%20")
@example("  ")
def test_the_form_of_an_identifier_is_that_of_the_parser(text: str) -> None:
    if text.isspace() and text.strip(" "):
        return  # other blanks alone are let through: there is no such item
    assert fits("identifier", text) == oai_name.is_uri(text)


@given(DIGITS | DATES | st.builds("{}T{}Z".format, DATES, st.times()))
@example("2000-02-29")
@example("1900-02-29")
@example("0000-02-29")
@example("0004-02-29T23:59:59Z")
@example("2026-01-01T24:00:00Z")
def test_the_form_of_a_date_is_that_of_the_parser(text: str) -> None:
    assert fits("from", text) == fits("until", text) == (from_datestamp(text) is not None)


@given(st.text("ab:!.%", max_size=6), st.text(max_size=5))
def test_the_forms_of_sets_and_tokens_are_those_of_the_parser(spec: str, token: str) -> None:
    assert fits("set", spec) == oai_name.is_set(spec)
    assert fits("resumptionToken", token) == (oai_name.NOT_IN_XML.search(token) is None)


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_has_its_arguments(name: str) -> None:
    row = request_table()["verbs"][name]
    verb = VERBS[name]
    assert (*row["required"], *row["optional"]) == (*verb.required, *verb.optional)
    assert row["exclusive"] == verb.exclusive
