"""Checks of records: each fault is found by its check alone, and good values by none."""

import time
from pathlib import Path

import pytest

from builder.check.checks import CheckCard, load_checks
from builder.check.records import check_records
from builder.check.sample import SampledRecord

GOOD = (Path(__file__).parent / "records/oai_dc.xml").read_text("utf-8")
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
XSD = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"


def check(
    metadata: str = GOOD,
    identifier: str = "oai:example.org:1",
    declared: tuple[str, str] = (OAI_DC, XSD),
    *,
    repository: str = "",
    deleted: bool = False,
) -> CheckCard:
    """Return the card on which a record was checked."""
    card = CheckCard()
    record = SampledRecord(identifier, "", deleted, (), "oai_dc", metadata.encode(), 3)
    namespace, schema = declared
    row = {"metadataPrefix": "oai_dc", "metadataNamespace": namespace, "schema": schema}
    check_records([record], [], card, [row], {"repositoryIdentifier": repository})
    return card


def add(element: str) -> CheckCard:
    """Return the card of a record with one more element."""
    return check(GOOD.replace("</oai_dc:dc>", f"{element}</oai_dc:dc>"))


@pytest.mark.parametrize(
    ("element", "number"),
    [
        ("<dc:subject/>", "R10"),
        ('<dc:subject xml:lang="en"> </dc:subject>', "R10"),
        ("<dc:subject>mills </dc:subject>", "R11"),
        ("<dc:identifier>http://example.org/a b.pdf</dc:identifier>", "R12"),
        ("<dc:identifier>http:/example.org/a</dc:identifier>", "R12"),
        ("<dc:identifier>https//example.org/a</dc:identifier>", "R12"),
        ("<dc:identifier>www.example.org/a</dc:identifier>", "R12"),
        ("<dc:identifier>http://server/a</dc:identifier>", "R12"),
        ("<dc:identifier>https://doi.org/https://doi.org/10.1/2</dc:identifier>", "R12"),
        ("<dc:identifier>http://hdl.handle.net/123456789/7</dc:identifier>", "R12"),
        ("<dc:identifier>http://[example.org/</dc:identifier>", "R12"),
        ("<dc:language>en_US</dc:language>", "R13"),
        ("<dc:language>English</dc:language>", "R13"),
        ("<dc:language>cz</dc:language>", "R13"),
        ('<dc:coverage xml:lang="jp">x</dc:coverage>', "R13"),
        ("<dc:date>2023-02-29</dc:date>", "R14"),
        ("<dc:date>2023-13</dc:date>", "R14"),
        ("<dc:date>12.5.2023</dc:date>", "R14"),
        ("<dc:date>2023-05-12 10:00:00</dc:date>", "R14"),
        ("<dc:date>0000</dc:date>", "R14"),
        ("<dc:publisher>Universit\ufffdt</dc:publisher>", "R15"),
        ("<dc:publisher>caf\x82</dc:publisher>", "R15"),
        ("<dc:publisher>CafÃ© de la Gare</dc:publisher>", "R16"),
        ("<dc:publisher>Itâ€™s</dc:publisher>", "R16"),
        ("<dc:publisher>ÐœÐ¾ÑÐºÐ²Ð°</dc:publisher>", "R16"),
        ("<dc:publisher>ï»¿Press</dc:publisher>", "R16"),
        ("<dc:description>A &amp;amp; B</dc:description>", "R17"),
        ("<dc:description>&amp;#233;</dc:description>", "R17"),
        ("<dc:description>&lt;p class='x'&gt;A&lt;/p&gt;</dc:description>", "R17"),
        ("<dc:relation>https://a.example.org/f?sig=abc&amp;x=1</dc:relation>", "R18"),
        ("<dc:source>ftp://user:geheim@example.org/f</dc:source>", "R18"),
        ("<dc:modified>2020</dc:modified>", "R07"),
        ("<oai_dc:subject>x</oai_dc:subject>", "R07"),
        ("<dc:subject>a<dc:subject>b</dc:subject></dc:subject>", "R08"),
    ],
)
def test_a_fault_is_found_by_its_check_alone(element: str, number: str) -> None:
    card = add(element)
    assert set(card.findings) == {number}
    [finding] = card.findings[number]
    assert (finding.where, finding.request) == ("oai:example.org:1", 3)
    assert "geheim" not in finding.seen
    assert "abc" not in finding.seen


@pytest.mark.parametrize(
    "element",
    [
        "<dc:date>2020</dc:date><dc:date>2020-05</dc:date><dc:date>2020-05-17T10:20:30Z</dc:date>",
        "<dc:date>2020-05-17T10:20+02:00</dc:date><dc:date>2020-05-17T10:20:30.45Z</dc:date>",
        "<dc:date>1984?</dc:date><dc:date>198X</dc:date><dc:date>2004-06/..</dc:date>",
        "<dc:date>2001-21</dc:date><dc:date>-0044-03-15</dc:date><dc:date>Y-170000002</dc:date>",
        "<dc:date>start=1990; end=1991; scheme=W3C-DTF</dc:date>",
        "<dc:language>pt-BR</dc:language><dc:language>zxx</dc:language>",
        "<dc:language>http://id.loc.gov/vocabulary/iso639-2/eng</dc:language>",
        "<dc:identifier>http://example.org:8080/a(b)?q=ö#c</dc:identifier>",
        "<dc:identifier>http://bücher.example/</dc:identifier>",
        "<dc:identifier>httpd manual</dc:identifier><dc:identifier>10.1234/5</dc:identifier>",
        "<dc:subject>MANHÃ: SÃO; «Â»</dc:subject><dc:subject>“IRMÔ – CRÈME…</dc:subject>",
        "<dc:subject>ÄÖÜß” GROẞ, ÎLE, ÐÑ, Ñandú, Šíp</dc:subject>",
        "<dc:description>x&lt;y and a&lt;b; R&amp;D; f(x) &amp;c.</dc:description>",
        "<dc:relation>https://example.org/?id=1&amp;page=2&amp;author=me@example.org</dc:relation>",
        '<dc:subject xml:lang="de">mills</dc:subject>',
        "<dc:language>iw</dc:language>",
    ],
)
def test_good_values_are_found_by_no_check(element: str) -> None:
    assert add(element).findings == {}


@pytest.mark.parametrize(
    ("identifier", "number"),
    [
        ("oai:x.org:100%", "R01"),
        ("oai:x.org:a b", "R01 R02"),
        ("1234", "R01"),
        ("http://example.org/ä", "R01"),
        ("oai:localhost:1", "R02"),
        ("oai:example.org", "R02"),
        ("oai:other.org:1", "R02"),
        ("oai:Example.ORG:a/b_(c)%20", ""),
        ("https://example.org/1", ""),
        ("urn:nbn:de:1-2", ""),
    ],
)
def test_identifiers(identifier: str, number: str) -> None:
    repository = "" if ":x.org" in identifier else "example.org"
    assert set(check(identifier=identifier, repository=repository).findings) == set(number.split())
    assert set(check("", identifier, deleted=True).applied) <= {"R01", "R02"}


def test_the_format_is_the_one_that_is_declared() -> None:
    assert set(check("").findings) == {"R03"}
    assert set(check(declared=("http://example.org/", XSD)).findings) == {"R04"}
    assert set(check(declared=(OAI_DC, "http://example.org/dc.xsd")).findings) == {"R06"}
    assert check(declared=(OAI_DC, XSD.replace("http:", "https:"))).findings == {}
    assert set(check(GOOD.replace(f"{OAI_DC} http:", "x http:")).findings) == {"R05"}
    undeclared = check(declared=("", ""))
    assert undeclared.findings == {}
    assert not undeclared.applied & {"R04", "R06"}
    untitled = GOOD.replace("dc:title>", "dc:relation>")
    assert set(check(untitled).findings) == {"R09"}


def test_an_unknown_format_is_checked_by_what_is_true_of_all() -> None:
    card = check('<a xmlns="urn:a" xml:lang="en_US"><b>x</b><b>x</b></a>', declared=("urn:a", ""))
    assert set(card.findings) == {"R05", "R11", "R13"}
    assert not card.applied & {"R07", "R08", "R09", "R12", "R14"}
    other = '<a xmlns="urn:a"><p><i>x</i><lb/><i>y</i></p><b>x<c r="1"/></b><b>x<c r="2"/></b></a>'
    assert set(check(other, declared=("", "")).findings) == {"R05"}


def test_what_no_parser_takes_is_a_finding() -> None:
    for metadata in ("<a><x:b/></a>", "<a>&#0;</a>", "<a/><a/>"):
        [finding] = check(metadata).findings["R08"]
        assert finding.seen.startswith("cannot be read: ")


def test_long_texts_take_no_longer_than_they_are() -> None:
    began = time.process_time()
    add(f"<dc:description>{'a' * 500_000}{'a://:' * 50_000}{'?a&amp;' * 50_000}</dc:description>")
    assert "R08" not in add("".join(f"<dc:type>{n}</dc:type>" for n in range(30_000))).applied
    assert time.process_time() - began < 5


def test_each_check_of_records_is_in_the_table() -> None:
    numbers = {number for number in load_checks() if number.startswith("R")}
    assert numbers == {f"R{number:02}" for number in range(1, 19)}
    assert add('<dc:coverage xml:lang="jp">x</dc:coverage>').applied == numbers
