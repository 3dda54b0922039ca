import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.snapshot import oai_name

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(names, min_size=1, max_size=4))
def test_escapes_are_reversible_and_valid(levels: list[str]) -> None:
    spec = oai_name.join_set(*levels)
    assert oai_name.is_set(spec)
    assert oai_name.split_set(spec) == tuple(levels)


@given(names, names)
def test_different_names_are_different_levels(one: str, other: str) -> None:
    assert (oai_name.escape_level(one) == oai_name.escape_level(other)) == (one == other)


def test_what_must_be_escaped_is() -> None:
    assert oai_name.join_set("mime", "application", "xhtml+xml") == "mime:application:xhtml!2Bxml"
    assert oai_name.escape_level("a:b!") == "a!3Ab!21"


def test_a_record_names_only_its_most_specific_sets() -> None:
    given_ = ["mime:text", "mime:text:html", "domain:cz", "mime:text:html", "mime:text:htm"]
    assert oai_name.most_specific_sets(given_) == ("domain:cz", "mime:text:htm", "mime:text:html")
    assert oai_name.set_lineage("a:b:c") == ("a", "a:b", "a:b:c")


@pytest.mark.parametrize("wrong", ["", ":", "a:", ":a", "a::b", "a b", "a/b", "á"])
def test_malformed_specifications_are_told(wrong: str) -> None:
    assert not oai_name.is_set(wrong)


def test_names_for_people() -> None:
    assert oai_name.set_name("domain:cz:webarchiv:www", {}) == "Captures of www.webarchiv.cz"
    assert oai_name.set_name("mime:text:html", {}) == "Captures of type text/html"
    assert oai_name.set_name("platform", {}) == "Datasets by platform"
    assert oai_name.set_name("platform:zenodo", {}) == "Datasets of the platform zenodo"
    assert oai_name.set_name("host:a.cz!3A80", {}) == "Datasets of a.cz:80"
    assert oai_name.set_name("status:success", {}) == "Datasets with the status success"
    assert oai_name.set_name("strategy:s3-file", {}) == "Datasets stored as s3-file"
    assert oai_name.set_name("collection:a:b", {"collection:a:b": "Serials"}) == "Serials"


def test_what_is_within_a_set() -> None:
    assert oai_name.is_within_set("a:b", "a:b")
    assert oai_name.is_within_set("a:b:c", "a:b")
    assert not oai_name.is_within_set("a:bc", "a:b")
    assert not oai_name.is_within_set("a", "a:b")


def test_the_sets_of_addresses_have_names_of_their_own() -> None:
    assert oai_name.set_name("domain:ip", {}) == "Captures of addresses without a name"
    assert oai_name.set_name("domain:ip:10.0.0.1", {}) == "Captures of 10.0.0.1"
    assert oai_name.set_name(oai_name.join_set("domain", "ip", "::1"), {}) == "Captures of ::1"
