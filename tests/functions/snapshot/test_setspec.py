import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.snapshot import setspec

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(names, min_size=1, max_size=4))
def test_escapes_are_reversible_and_valid(levels: list[str]) -> None:
    spec = setspec.join(*levels)
    assert setspec.is_valid(spec)
    assert setspec.split(spec) == tuple(levels)


@given(names, names)
def test_different_names_are_different_levels(one: str, other: str) -> None:
    assert (setspec.escape(one) == setspec.escape(other)) == (one == other)


def test_what_must_be_escaped_is() -> None:
    assert setspec.join("mime", "application", "xhtml+xml") == "mime:application:xhtml!2Bxml"
    assert setspec.escape("a:b!") == "a!3Ab!21"


def test_a_record_names_only_its_most_specific_sets() -> None:
    given_ = ["mime:text", "mime:text:html", "domain:cz", "mime:text:html", "mime:text:htm"]
    assert setspec.most_specific(given_) == ("domain:cz", "mime:text:htm", "mime:text:html")
    assert setspec.lineage("a:b:c") == ("a", "a:b", "a:b:c")


@pytest.mark.parametrize("wrong", ["", ":", "a:", ":a", "a::b", "a b", "a/b", "á"])
def test_malformed_specifications_are_told(wrong: str) -> None:
    assert not setspec.is_valid(wrong)


def test_names_for_people() -> None:
    assert setspec.name("domain:cz:webarchiv:www", {}) == "Captures of www.webarchiv.cz"
    assert setspec.name("mime:text:html", {}) == "Captures of type text/html"
    assert setspec.name("platform", {}) == "Datasets by platform"
    assert setspec.name("platform:zenodo", {}) == "Datasets of the platform zenodo"
    assert setspec.name("host:a.cz!3A80", {}) == "Datasets of a.cz:80"
    assert setspec.name("status:success", {}) == "Datasets with the status success"
    assert setspec.name("strategy:s3-file", {}) == "Datasets stored as s3-file"
    assert setspec.name("collection:a:b", {"collection:a:b": "Serials"}) == "Serials"


def test_what_is_within_a_set() -> None:
    assert setspec.is_within("a:b", "a:b")
    assert setspec.is_within("a:b:c", "a:b")
    assert not setspec.is_within("a:bc", "a:b")
    assert not setspec.is_within("a", "a:b")


def test_the_sets_of_addresses_have_names_of_their_own() -> None:
    assert setspec.name("domain:ip", {}) == "Captures of addresses without a name"
    assert setspec.name("domain:ip:10.0.0.1", {}) == "Captures of 10.0.0.1"
    assert setspec.name(setspec.join("domain", "ip", "::1"), {}) == "Captures of ::1"
