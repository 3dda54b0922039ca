"""Names: what a request's text asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.platforms.landing import DatasetName, parse_name
from builder.sources.datasets.protocols import FilesetError

DOI = "10.5281/zenodo.21"


@pytest.mark.parametrize(
    "text",
    [
        DOI,
        f" {DOI}\n",
        f"doi:{DOI}",
        f"DOI: {DOI}",
        f"info:doi/{DOI}",
        f"https://doi.org/{DOI}",
        f"http://dx.doi.org/{DOI}",
        f"https://www.doi.org/{DOI}",
        f"doi.org/{DOI}",
        "https://doi.org/10.5281%2Fzenodo.21",
        f"https://doi.org/{DOI}?utm=1#top",
    ],
)
def test_a_doi_is_found_in_each_form(text: str) -> None:
    assert parse_name(text) == DatasetName(f"https://doi.org/{DOI}", DOI)


def test_the_case_of_a_doi_is_kept_for_those_who_tell_it_apart() -> None:
    name = parse_name("doi:10.5072/FK2/ABC")
    assert (name.handle, name.doi) == ("10.5072/FK2/ABC", "10.5072/fk2/abc")


def test_a_doi_is_escaped_in_the_url_of_its_resolver() -> None:
    assert parse_name("10.1002/(sici)1097<1::aid>2.0;2-#").url == (
        "https://doi.org/10.1002/(sici)1097%3C1::aid%3E2.0;2-%23"
    )


@pytest.mark.parametrize("text", ["hdl:20.500.1/ABC", "https://hdl.handle.net/20.500.1/ABC"])
def test_a_handle_is_no_doi(text: str) -> None:
    name = parse_name(text)
    assert name == DatasetName("https://hdl.handle.net/20.500.1/ABC", "20.500.1/ABC")
    assert name.doi is None


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://Zenodo.ORG/records/21#files", "https://zenodo.org/records/21"),
        ("http://example.org", "http://example.org/"),
        ("https://doi.org/", "https://doi.org/"),
        ("https://doi.org/about", "https://doi.org/about"),
    ],
)
def test_urls_are_normalised(text: str, url: str) -> None:
    assert parse_name(text) == DatasetName(url)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "zenodo.org/records/21",
        "21",
        "ftp://example.org/a",
        "https://user:secret@example.org/",
        "https://exa mple.org/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "10.5281",
        "10.5281/",
        "doi:zenodo",
        "https://",
        "https://exam\nple.org/",
        "20.500.1/ABC",
    ],
)
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(FilesetError) as raised:
        parse_name(text)
    assert raised.value.status == "bad-identifier"
    assert "\n" not in raised.value.detail


@given(st.text())
def test_any_text_is_a_name_or_refused(text: str) -> None:
    fault = ""
    try:
        name = parse_name(text)
    except FilesetError as error:
        name, fault = parse_name(DOI), error.status
    assert fault in ("", "bad-identifier")
    assert name.url.startswith(("http://", "https://"))
    assert parse_name(name.url).url == name.url
