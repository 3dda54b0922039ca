"""Links to archived copies, in every format that can state one."""

from urllib.parse import quote

import pytest

from functions.config import configuration
from functions.oai.render import check
from functions.oai.render.copy_address import CopyAddresses
from functions.snapshot.errors import ConfigurationError
from tests.functions.oai.test_formats import made
from tests.functions.reading.memory import Item, capture

DC = "{http://purl.org/dc/elements/1.1/}"
REPLAY = "https://wayback.example.org/{timestamp}/{url}"
OWN_COPY = "https://example.org/content/{identifier}"
ITEM: Item = capture("http://a.cz/x?a=1&b=%20#c", fetch_date="2007-11-05T12:00:00.5Z")


def settings(*addresses: str, base: str = "") -> configuration.Configuration:
    given = ", ".join(f"'{one}'" for one in addresses)
    text = f"[repository]\nbase_url = '{base}'\n[content]\naddress = [{given}]\n"
    return configuration.parse(text, {})


@pytest.mark.parametrize(
    ("addresses", "date", "found"),
    [
        ([REPLAY], "2007-11-05T12:00:00Z", "https://wayback.example.org/20071105120000/{}"),
        ([REPLAY], "2007-11", "https://wayback.example.org/20071101000000/{}"),
        ([REPLAY], None, None),
        ([REPLAY, OWN_COPY], None, "https://example.org/content/oai:a.cz:x,y%2Fz%3F"),
        (
            ["https://a.cz/?at={timestamp}&u={url}"],
            "2007",
            f"https://a.cz/?at=20070101000000&u={quote('http://a.cz/x?a=1&b=ž%20#c', safe='')}",
        ),
        (["/content?id={identifier}"], None, "https://b.cz/content?id=oai%3Aa.cz%3Ax%2Cy%2Fz%3F"),
    ],
)
def test_the_first_address_counts_whose_fields_the_record_has(
    addresses: list[str], date: str | None, found: str | None
) -> None:
    copies = CopyAddresses.of(settings(*addresses, base="https://b.cz/oai"))
    url = "http://a.cz/x?a=1&b=ž%20#c"
    address = copies.find("oai:a.cz:x,y/z?", url, date)
    assert address == (found and found.format("http://a.cz/x?a=1&b=%C5%BE%20%23c"))


def test_a_capture_names_its_copy_first_and_its_url_behind_it() -> None:
    (dc,) = made("oai_dc", ITEM, content_address=[REPLAY])
    copy = "https://wayback.example.org/20071105120000/http://a.cz/x?a=1&b=%20%23c"
    assert [e.text for e in dc.iter(f"{DC}identifier")][:2] == [copy, "http://a.cz/x?a=1&b=%20#c"]
    (mods,) = made("mods", ITEM, content_address=[REPLAY])
    assert mods.findtext("{*}location/{*}url") == copy
    (own,) = made("capture", ITEM, content_address=[REPLAY])
    assert own.findtext("{*}content_address") == copy
    (plain,) = made("capture", ITEM)
    assert plain.find("{*}content_address") is None


@pytest.mark.parametrize(
    ("url", "part"),
    [("http://e.cz/?a[]=1", "?a%5B%5D=1"), ("http://e.cz/50%&<%u2", "/50%25&%3C%25u2")],
)
def test_any_url_makes_a_valid_address(url: str, part: str) -> None:
    item = capture(url, fetch_date="2007")
    (mods,) = made("mods", item, content_address=[REPLAY])  # held against the schema
    assert mods.findtext("{*}location/{*}url", "").endswith(part)


def test_a_dataset_names_its_bundle_or_its_files() -> None:
    copies = CopyAddresses.of(settings(OWN_COPY, OWN_COPY + "?file={file}"))
    files = [{"path": "a b.csv", "key": "filesets/1"}, {"path": "c", "key": None}]
    assert copies.find_files("oai:a.cz:1", files, {"key": "x"}) == [
        "https://example.org/content/oai:a.cz:1"
    ]
    assert copies.find_files("oai:a.cz:1", files[:1], None) == [
        "https://example.org/content/oai:a.cz:1"
    ]
    assert copies.find_files("oai:a.cz:1", files, None) == [
        "https://example.org/content/oai:a.cz:1?file=a%20b.csv"
    ]
    assert copies.find_files("oai:a.cz:1", files[1:], None) == []
    assert copies.find_files("oai:a.cz:1", None, None) == []
    assert CopyAddresses.of(settings(OWN_COPY)).find_files("oai:a.cz:1", files, None) == []


def test_another_address_is_another_format() -> None:
    """So its records get a new datestamp at the next publish."""
    none, own, other = (
        check.digests(settings(*addresses)) for addresses in ([], [OWN_COPY], [REPLAY])
    )
    changed = {prefix for prefix in none if none[prefix] != own[prefix] != other[prefix]}
    assert changed == {"amf", "oai_dc", "capture", "mods", "oai_datacite", "mets"}
    assert all(none[prefix] == own[prefix] for prefix in {*none} - changed)


@pytest.mark.parametrize("base", ["", "https://a.org/request", "https://a.org/oai-pmh"])
def test_a_path_needs_a_base_url(base: str) -> None:
    with pytest.raises(ConfigurationError, match=r"repository\.base_url does not end in /oai"):
        CopyAddresses.of(settings("/content/{identifier}", base=base))


@pytest.mark.parametrize(
    "address",
    [
        "content/{identifier}",
        "//a.cz/{url}",
        "https://a.cz/",
        "/{identifier}/{what}",
        "https://a.cz{identifier}",
        "https://{identifier}.a.cz/x",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError, match=r"content\.address"):
        settings(address)
