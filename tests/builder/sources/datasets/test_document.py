"""What platforms write is read with nothing taken for granted."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.sources.datasets.item import FilesetManifestFile, Licence, Related
from builder.sources.datasets.platforms import json_document
from builder.sources.datasets.platforms.json_document import read_pages
from builder.sources.datasets.platforms.metadata import (
    licences,
    orcid,
    person_from_parts,
    person_from_text,
    plain_text,
    relate,
    spdx,
)
from builder.sources.datasets.protocols import FilesetError
from tests.builder.sources.datasets.pages import Pages

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_whatever_stands_there_it_is_read_or_not_and_never_a_fault(value: Any) -> None:
    for read in (
        json_document.text,
        json_document.day,
        json_document.doi,
        json_document.web,
        orcid,
        person_from_text,
        plain_text,
    ):
        found = read(value)
        assert found is None or found
    assert json_document.size(value) is None or isinstance(json_document.size(value), int)
    assert all(isinstance(text, str) and text for text in json_document.texts(value, apart=";"))
    assert all(isinstance(entry, dict) for entry in json_document.entries(value))
    assert json_document.inner(value, "a", "b") == {} or isinstance(value, dict)
    assert relate(value, "Cites") is None or isinstance(value, str)
    assert all(isinstance(licence, Licence) for licence in licences(name=value, url=value))


@given(st.text())
def test_a_text_that_was_made_plain_can_be_written_and_has_no_space_around_it(given: str) -> None:
    found = plain_text(given)
    if found is not None:
        assert found.strip() == found
        found.encode("utf-8")
        assert not set(found) & set(map(chr, (0, 8, 11, 12, 27, 127)))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("<p>One &amp; two</p><p>three<br/>four</p>", "One & two\nthree\nfour"),
        ("a < b and c > d", "a < b and c > d"),
        ("<b>Bold</b><script>alert(1)</script> text", "Bold text"),
        ("&eacute;t&#233;", "été"),
        ("<p>  </p>", None),
        ("one\r\n\r\n  two", "one\ntwo"),
        ("AT&T; M&M", "AT&T; M&M"),
        (7, None),
    ],
)
def test_html_becomes_plain_text(given: object, expected: str | None) -> None:
    assert plain_text(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2020-04-29T19:43:27Z", "2020-04-29"),
        ("2008-09-10 18:05:14", "2008-09-10"),
        ("1998", "1998"),
        ("1998-07", "1998-07"),
        ("2020-02-30", None),
        ("19980731", None),
        ("1998-7-1", None),
        ("", None),
        (1998, None),
    ],
)
def test_a_day_is_one_that_there_is(given: object, expected: str | None) -> None:
    assert json_document.day(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (" https://example.org/a b.csv ", "https://example.org/a%20b.csv"),
        ("https://example.org/", "https://example.org/"),
        ("https://words for a host/a.csv", None),
        ("https://example.org\t/a", None),
        ("https:///a.csv", None),
        ("https://[::1/a", None),
        ("ftp://example.org/a", None),
        ("a.csv", None),
    ],
)
def test_a_url_has_a_host(given: str, expected: str | None) -> None:
    assert json_document.web(given) == expected


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("/b", "https://example.org/b"),
        ("b?page=2", "https://example.org/a/b?page=2"),
        ("https://example.com/", "https://example.com/"),
        ("https://[::1", None),
        ("javascript:alert(1)", None),
        (None, None),
    ],
)
def test_a_link_is_read_where_it_stands(link: str | None, expected: str | None) -> None:
    assert json_document.join_url("https://example.org/a/", link) == expected


def test_digests_are_of_their_length_and_in_lower_case() -> None:
    assert json_document.digest(" D41D8CD98F00B204E9800998ECF8427E ", "md5") == "d41d8cd9" + (
        "8f00b204e9800998ecf8427e"
    )
    assert json_document.digest("d41d8cd98f00b204e9800998ecf8427e", "sha1") is None
    assert json_document.digest("1adGSDHSG232776e7qedqgdaysdfts8", "md5") is None
    assert json_document.digest("", "md5") is None
    for kind, length in (("MD5", 32), ("SHA-1", 40), ("sha256", 64), ("SHA-512", 128)):
        name = kind.lower().replace("-", "")
        assert json_document.digests(kind, "E" * length) == {name: "e" * length}


def test_sizes_may_be_written_as_texts_and_are_not_negative() -> None:
    assert [json_document.size(one) for one in (7, "13165", 7.0, True, -1, "1e3", 7.5, None)] == [
        7,
        13165,
        7,
        None,
        None,
        None,
        None,
        None,
    ]


def test_files_of_one_path_are_put_apart_by_id_and_others_are_left() -> None:
    files = [FilesetManifestFile(path=path) for path in ("a.csv", "b.csv", "a.csv")]
    assert [file.path for file in json_document.apart(files, ["1", "2", "3"])] == [
        "1/a.csv",
        "b.csv",
        "3/a.csv",
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("CC BY 4.0", "CC-BY-4.0"),
        ("CC BY-NC-SA 3.0", "CC-BY-NC-SA-3.0"),
        ("https://creativecommons.org/licenses/by-sa/4.0/deed.cs", "CC-BY-SA-4.0"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        ("CC0", "CC0-1.0"),
        ("https://spdx.org/licenses/CC0-1.0.html", "CC0-1.0"),
        ("MIT", "MIT"),
        ("http://www.opendefinition.org/licenses/cc-by", None),
        ("Creative Commons Attribution", None),
    ],
)
def test_a_licence_has_an_spdx_id_where_it_is_sure(given: str, expected: str | None) -> None:
    assert spdx(given) == expected


def test_a_licence_is_told_by_name_and_url_and_none_by_neither() -> None:
    url = "https://creativecommons.org/licenses/by/4.0/"
    assert licences(name="CC BY 4.0", url=url) == (Licence("CC BY 4.0", "CC-BY-4.0", url),)
    assert licences(name=" ", url="none") == ()


def test_an_orcid_has_its_check_digit() -> None:
    assert orcid("https://orcid.org/0000-0002-1825-0097") == "0000-0002-1825-0097"
    assert orcid("0000-0002-1694-233x") == "0000-0002-1694-233X"
    assert orcid("0000-0002-1825-0098") is None


def test_names_are_cut_where_that_is_sure() -> None:
    person = person_from_parts("Jan", "Novák", iri="0000-0002-1825-0097", affiliations=("A",))
    assert person
    assert (person.name, person.given, person.family) == ("Novák, Jan", "Jan", "Novák")
    alone = person_from_parts(None, "Plato")
    assert alone
    assert (alone.name, alone.given, alone.family) == ("Plato", None, None)
    assert person_from_parts(" ", None) is None
    cut = person_from_text("Novák, Jan")
    assert cut
    assert (cut.given, cut.family) == ("Jan", "Novák")
    for name in ("Novák, Jan, 1901-1980", "Jan Novák", "Smith, Jones, and sons", ", Jan"):
        left = person_from_text(name)
        assert left
        assert (left.name, left.given, left.family) == (name, None, None)


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("https://doi.org/10.1234/ABC", Related("10.1234/abc", "DOI", "Cites")),
        ("arXiv:2101.00001v2", Related("arXiv:2101.00001v2", "arXiv", "Cites")),
        ("https://hdl.handle.net/11858/1", Related("11858/1", "Handle", "Cites")),
        ("http://example.org/a", Related("http://example.org/a", "URL", "Cites")),
        ("an article", None),
    ],
)
def test_what_is_related_is_named_by_its_kind(identifier: str, expected: Related | None) -> None:
    assert relate(identifier, "cites") == expected
    assert relate(identifier, "likes") is None


def following(page: Any) -> str | None:
    return json_document.text(page.get("next"))


def test_pages_are_followed_to_the_last() -> None:
    api = Pages({"https://a.org/1": {"next": "https://a.org/2"}, "https://a.org/2": {}})
    assert len(list(read_pages(api, "https://a.org/1", ("a.org",), following))) == 2


@pytest.mark.parametrize(
    ("second", "status"),
    [
        ("https://a.org/1", "platform-error"),
        ("https://b.org/2", "platform-bad-response"),
        ("https://a.org/gone", "incomplete-manifest"),
    ],
)
def test_pages_that_lead_back_or_away_are_refused(second: str, status: str) -> None:
    api = Pages({"https://a.org/1": {"next": second}})
    with pytest.raises(FilesetError) as caught:
        list(read_pages(api, "https://a.org/1", ("a.org",), following))
    assert caught.value.status == status


def test_a_list_without_an_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.sources.datasets.platforms.json_document.MOST_PAGES", 3)

    class Endless(Pages):
        def document(self, url: str, *, hosts: Any = ()) -> Any:
            self.asked.append(url)
            return {"next": f"https://a.org/{len(self.asked)}"}

    api = Endless({})
    with pytest.raises(FilesetError, match="endless"):
        list(read_pages(api, "https://a.org/0", ("a.org",), following))
    assert len(api.asked) == 3


def test_a_list_that_is_none_is_refused_and_an_object_for_one_is_a_list() -> None:
    assert json_document.entries({"a": 1}) == ({"a": 1},)
    assert json_document.entries([{"a": 1}, "b"]) == ({"a": 1},)
    for value in (None, {"a": 1}, [1], "x"):
        with pytest.raises(FilesetError, match="platform-bad-response"):
            json_document.objects_of(value, "the list")
    with pytest.raises(FilesetError, match="platform-bad-response"):
        json_document.mapping(json.loads("[]"), "the answer")
    with pytest.raises(FilesetError, match="platform-bad-response"):
        json_document.name("", "a file")
