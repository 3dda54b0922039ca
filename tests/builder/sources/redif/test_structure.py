"""Clusters, values and handles."""

import pytest

from builder.sources.redif.form import notation
from builder.sources.redif.form.cluster import edit_distance, nearest
from functions.snapshot.oai_name import canonical_handle
from tests.builder.sources.redif.samples import INSTITUTION, PAPER, PERSON, SERIES, one, with_line


def test_clusters_are_nested_and_a_member_of_the_outer_one_closes_the_inner_one() -> None:
    assert one(PAPER).structure == {
        "template-type": ["ReDIF-Paper 1.0"],
        "author": [
            {
                "name": ["Lebowski, Jeffrey"],
                "workplace": [{"name": ["Bowling Alley"]}],
                "email": ["dude@example.org"],
            },
            {"name": ["Sobchak, Walter"]},
        ],
        "title": ["On Rugs"],
        "abstract": ["They tie the room together."],
        "file": [{"url": ["http://example.org/rugs.pdf"], "format": ["application/pdf"]}],
        "creation-date": ["1998-03"],
        "handle": ["RePEc:aaa:wpaper:98-01"],
    }


def test_prefixes_of_one_cluster_are_apart() -> None:
    structure = one(INSTITUTION).structure
    assert structure["primary"] == [{"name": ["University of Rugs"]}]
    assert structure["secondary"][0]["homepage"] == ["http://example.org/"]
    assert one(PERSON).structure["workplace"] == [{"name": ["None"], "share": ["100"]}]
    structure = one(SERIES.replace(b"Provider-", b"Publisher-")).structure
    assert structure["provider"] == [{"name": ["Department of Rugs"]}]
    found = one(with_line("Classification-MSC-1991: 91B", at=8))
    assert found.structure["classification-msc-1991"] == ["91B"]
    assert found.structure["abstract"] == ["They tie the room together."]
    assert one(PAPER.replace(b"http://example", b"URL: http://example")).diagnostics == ()


def test_a_repeated_key_opens_another_cluster_and_an_empty_one_too() -> None:
    data = b"Template-Type: ReDIF-Paper 1.0\nFile-URL: http://a.org/1\nFile-Function: data\n"
    data += b"File-URL:\nFile-Format: text/html\nFile-URL: ftp://a.org/2\nFile-Format: Text/Plain\n"
    assert one(data).structure["file"] == [
        {"url": ["http://a.org/1"], "function": ["data"]},
        {"format": ["text/html"]},
        {"url": ["ftp://a.org/2"], "format": ["text/plain"]},
    ]


def test_what_is_unknown_or_misplaced_is_among_the_attributes() -> None:
    found = one(with_line("Author-Fax: 1", with_line("Purpose: x", at=6), at=7))
    assert "author-fax" not in found.structure
    assert "fax" not in found.structure["author"][-1]
    assert [(a.name, a.line, a.value) for a in found.attributes[6:8]] == [
        ("Purpose", 7, "x"),
        ("Author-Fax", 8, "1"),
    ]


def test_values_are_raw_in_attributes_and_of_one_form_in_the_structure() -> None:
    data = PAPER.replace(b"1998-03", b"199803").replace(b"98-01", b"98-01A")
    data = with_line(
        "classification-jel:  e11,E12;  a1", data.replace(b"application", b"Application")
    )
    found = one(data)
    assert [a.value for a in found.attributes if a.name == "Abstract"] == [
        "They tie\n the room together."
    ]
    assert found.attributes[1] == ("classification-jel", 2, "e11,E12;  a1")
    assert found.structure["classification-jel"] == ["E11 E12 A1"]
    assert found.structure["creation-date"] == ["1998-03"]
    assert found.structure["file"][0]["format"] == ["application/pdf"]
    assert (found.handle, found.handle_written) == (
        "RePEc:aaa:wpaper:98-01a",
        "RePEc:aaa:wpaper:98-01A",
    )


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Title : x", "On Rugs\nTitle : x"),
        ("https://example.org/", "On Rugs\nhttps://example.org/"),
        ("ftp://example.org/", "On Rugs\nftp://example.org/"),
        ("Note that: x", "On Rugs\nNote that: x"),
        ("é: x", "On Rugs\né: x"),
        (" Note: x", "On Rugs\n Note: x"),
        ("flush left", "On Rugs\nflush left"),
        ("\n\nflush left  ", "On Rugs\nflush left"),
        ("# no part\nof it", "On Rugs\nof it"),
        (" # a part", "On Rugs\n # a part"),
        ("\x1a\nof it", "On Rugs\nof it"),
    ],
)
def test_what_continues_a_value(line: str, value: str) -> None:
    found = one(with_line(line, at=6))
    assert [a.value for a in found.attributes if a.name == "Title"] == [value]
    later = one(PAPER.replace(b"Title: On", b"Title:\n  On"))  # it may begin on the next line
    assert later.structure["title"] == ["On Rugs"]
    assert [a.value for a in later.attributes if a.name == "Title"] == ["On Rugs"]


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://a.org/b", "http://a.org/b"),
        ("URL:http://a.org/b", "http://a.org/b"),
        ("url: http://a.org/b", "http://a.org/b"),
        ("http://a.org/\n b", "http://a.org/b"),
        ("http://a.org/x y", "http://a.org/xy"),
        ("http://a.org/x\u00a0y", "http://a.org/xy"),
    ],
)
def test_a_url_loses_white_space_and_its_label(written: str, url: str) -> None:
    assert notation.clean_url(written) == url
    found = one(PAPER.replace(b"http://example.org/rugs.pdf", written.encode()))
    assert found.structure["file"][0]["url"] == [url]


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("12", 12288),
        ("12 kB", 12288),
        ("12 Kb.", 12288),
        ("1,234 bytes", 1234),
        ("1 byte", 1),
        ("0.5", 512),
        ("2 MB", 2 << 20),
        ("7 B", 7),
        ("", None),
        ("some", None),
        ("1.2.3", None),
        ("12 pages", None),
        ("9" * 400, None),
    ],
)
def test_a_size_is_in_kilobytes_unless_it_says_otherwise(written: str, size: int | None) -> None:
    assert notation.parse_size(written) == size
    found = one(with_line(f"File-Size: {written}", at=9)).structure["file"][0]
    assert found.get("size", [""]) == [written if size is None else f"{size} bytes"]


@pytest.mark.parametrize(
    ("written", "handle"),
    [
        ("RePEc:AAA:WPaper:98/01A", "RePEc:aaa:wpaper:98/01a"),
        ("repec:aaa", "RePEc:aaa"),
        ("RELIS:aaa:bbbbbb", "ReLIS:aaa:bbbbbb"),
        ("RePEc:per:1974-08-14:Francois_Rycx", "RePEc:per:1974-08-14:FRANCOIS_RYCX"),
        ("REPEC:PER:1974-08-14:é", "RePEc:per:1974-08-14:É"),
        ("RePEc:per:wpaper:A1", "RePEc:per:wpaper:a1"),
        ("PRY53", "pry53"),
        ("RePEc: rsp: wpaper:\n wp48", "RePEc: rsp: wpaper: wp48"),
        ("other:A", "other:a"),
    ],
)
def test_a_handle_has_one_form(written: str, handle: str) -> None:
    assert canonical_handle(written) == handle
    assert canonical_handle(handle) == handle


@pytest.mark.parametrize("character", "!\"%&'()*+,-./:<>=?@\\_`{}~")
def test_the_code_of_a_document_may_hold(character: str) -> None:
    assert notation.normalize(f"RePEc:aaa:bbbbbb:1{character}2", "document") is not None
    assert notation.normalize(f"RePEc:aaa:bbbbbb:1{character}2", "series") is None


def test_edit_distance() -> None:
    assert edit_distance("kitten", "sitting", 9) == 3
    assert edit_distance("kitten", "sitting", 1) == 2
    assert edit_distance("", "ab", 3) == 2
    assert nearest("titel", ("title", "volume", "tile")) == ("tile", "title")
    assert nearest("titels", ("title", "volume", "tile")) == ("title",)
    assert nearest("doi", ("doj",)) == ()
