"""Records are cut out of XML byte for byte, and those beside a damaged one are read."""

import io
from pathlib import Path

import pytest
from lxml import etree

from builder.sources.records.forms import FORMS, recognise
from builder.sources.records.forms import form as forms
from builder.sources.records.forms.xml import read
from builder.sources.records.record import (
    KnownRecord,
    MarcField,
    MarcRecord,
    ReadOptions,
    RecordFault,
    RecordsError,
    SourceRecord,
)

SLIM = 'xmlns:m="http://www.loc.gov/MARC21/slim"'
LEADER = "00000nam a2200000   4500"
OAI = "http://www.openarchives.org/OAI/2.0/"
DC = '<d:dc xmlns:d="http://www.openarchives.org/OAI/2.0/oai_dc/"><!--</record>--></d:dc>'


def items(data: bytes, **options: str) -> tuple[list[SourceRecord], list[RecordFault]]:
    every = [*read(io.BytesIO(data), ReadOptions(**options))]  # type: ignore[arg-type]
    records = [item for item in every if isinstance(item, SourceRecord)]
    return records, [item for item in every if isinstance(item, RecordFault)]


def marc(number: int, leader: str = LEADER) -> str:
    return (
        f"<m:record><m:leader>{leader}</m:leader>\n"
        f'<m:controlfield tag="001">n{number}</m:controlfield>'
        '<m:datafield tag="245" ind1="1" ind2=" "><m:subfield code="a">A &amp; <!-- b -->B'
        "</m:subfield></m:datafield></m:record >"
    )


def collection(*records: str) -> bytes:
    return f"<!DOCTYPE c [<!ENTITY e 'x'>]>\n<m:c {SLIM}>{''.join(records)}</m:c>".encode(
        "utf-8", "surrogateescape"
    )


def test_marcxml_is_kept_as_it_stands_with_the_namespaces_around_it() -> None:
    records, faults = items(collection(marc(1), marc(2, LEADER[:-1]), "<!-- < -->", marc(3)))
    assert [record.place for record in records] == [f"element {n}, line {n + 1}" for n in (1, 2, 3)]
    assert records[0].xml == marc(1).replace("<m:record>", f"<m:record {SLIM}>")
    fields = (MarcField("001", "", "n1"), MarcField("245", "1 ", "", (("a", "A & B"),)))
    assert records[0].content == MarcRecord(LEADER, fields)
    assert [(fault.code, fault.field) for fault in faults] == [("repaired-record", "leader")]
    bare = f"<collection>{marc(1)}</collection>".replace("m:", "").encode()
    assert items(bare)[0][0].content == records[0].content
    assert 'xmlns="http://www.loc.gov/MARC21/slim"' in items(bare)[0][0].xml
    options = ReadOptions(is_known=lambda digest: digest == records[0].digest)
    assert next(read(io.BytesIO(collection(marc(1))), options)) == KnownRecord(records[0].digest)


@pytest.mark.parametrize(
    "damaged",
    [
        marc(2).replace("A &amp;", "A &f;"),
        marc(2).replace("n2", "n\x01"),
        marc(2).replace("</m:record >", ""),
        marc(2).replace("</m:subfield>", ""),
        marc(2).replace("n2", "n\udcff"),
        "<m:record/>",
        marc(2).replace("<m:datafield", "<m:</m:record>"),
        marc(2)[:5],
    ],
)
def test_the_neighbours_of_a_damaged_record_are_read(damaged: str) -> None:
    records, (fault,) = items(collection(marc(1), damaged, marc(3)))
    assert [record.content.fields[0].data for record in records] == ["n1", "n3"]  # type: ignore[union-attr]
    assert (fault.place[:11], fault.code) == ("element 2, ", "bad-record")


def test_nothing_outside_the_file_is_fetched_and_no_entity_is_a_bomb(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    bomb = f"'{'x' * 99}'><!ENTITY a '{'&s;' * 99}'><!ENTITY b '{'&a;' * 99}'"
    for entity, detail in (
        (f'SYSTEM "{secret.as_uri()}"', "Entity 's' not defined"),
        ("'&s;'", "nested"),
        (bomb, "long"),
    ):
        title = "<title>&b;</title>" if entity == bomb else "<title>&s;</title>"
        data = f"<!DOCTYPE mods [<!ENTITY s {entity}>]><mods>{title}</mods>".encode()
        records, (fault,) = items(data)
        assert records == []
        assert detail in fault.detail


def test_entities_of_the_file_itself_are_put_in() -> None:
    doctype = (
        "<!DOCTYPE r SYSTEM 'r.dtd' [<!-- <!ENTITY nl 'no'> --><!ENTITY nl \"Nether&#108;ands'\">\n"
        "<!ENTITY nl 'second'><!ENTITY u 'urn:&nl;'><!ENTITY i '<i>&amp;</i>'>]>"
    )
    data = f'{doctype}<r xmlns="&u;"><a t="&nl;">&i;<![CDATA[&nl;]]></a><a/></r>'
    records, faults = items(data.encode(), element="a")
    assert (len(records), faults) == (2, [])
    content = records[0].content
    assert isinstance(content, etree._Element)
    assert content.tag == "{urn:Netherlands'}a"
    assert content.get("t") == "Netherlands'"
    assert "".join(content.itertext()) == "&&nl;"


@pytest.mark.parametrize("name", ["m:record", "book"])
def test_a_record_that_is_too_long_harms_no_other(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "LONGEST", 2_000_000)
    monkeypatch.setattr(forms, "CHUNK", 100_000)
    long = f"<{name}><t>{'x' * 5_000_000}<{name}/></t>{'<y/>' * 99}</{name}>\n"
    space = SLIM if name == "m:record" else 'xmlns:m="x"'
    small = marc(1) if name == "m:record" else "<book><t/></book>"
    long = long if name == "book" else long.replace(f"<{name}/>", "")
    records, (fault,) = items(f"<m:c {space}>{small}{small}{long}{small}</m:c>".encode())
    assert len(records) == 3
    assert (fault.code, fault.detail) == ("bad-record", forms.TOO_LONG)
    assert (fault.place[:9], records[-1].place[:9]) == ("element 3", "element 4")
    endless = f"<m:c {space}>{small}{small}{long[:5_000_000]}".encode()
    with pytest.raises(RecordsError, match="cut off"):
        items(endless)


def test_a_file_of_oai_pmh_gives_identifiers_formats_and_sets() -> None:
    header = "<header><identifier>oai:a:{}</identifier><setSpec>s</setSpec></header>"
    answer = (
        f'<OAI-PMH xmlns="{OAI}"><request verb="ListRecords" metadataPrefix="p">u</request>'
        f"<ListRecords><record>{header.format(1)}<metadata>{DC}</metadata></record>"
        f"<record>{header.format(2)}<metadata><record xmlns='x'/></metadata></record>"
        f"<record>{header.format(3).replace('r>', 'r status=`deleted`>', 1)}</record>"
        f"<record>{header.format(4)}</record></ListRecords></OAI-PMH>"
    ).replace("`", '"')
    records, (fault,) = items(answer.encode())
    seen = [(r.identifier, r.prefix, r.sets, r.deleted, r.form, r.xml) for r in records]
    inner = f"<record xmlns='x' xmlns:none=\"{OAI}\"/>".replace(f' xmlns:none="{OAI}"', "")
    assert seen == [
        ("oai:a:1", "p", ("s",), False, "oai_dc", DC),
        ("oai:a:2", "p", ("s",), False, "xml", inner),
        ("oai:a:3", "p", ("s",), True, "xml", ""),
    ]
    assert (fault.place, fault.field) == ("element 4, line 1", "metadata")
    static = f'<Repository xmlns="{OAI}static-repository" xmlns:o="{OAI}">'
    for prefix in "pq":
        record = f"<o:record><o:header><o:identifier>i</o:identifier></o:header>{DC}</o:record>"
        record = record.replace("<d:dc", "<o:metadata><d:dc").replace(
            "</d:dc>", "</d:dc></o:metadata>"
        )
        static += f'<ListRecords metadataPrefix="{prefix}">{record}</ListRecords>'
    records, _ = items(f"{static}</Repository>".encode())
    assert [(record.identifier, record.prefix) for record in records] == [("i", "p"), ("i", "q")]


@pytest.mark.parametrize(
    ("data", "form", "count"),
    [
        ('<m:s xmlns:m="http://www.loc.gov/mods/v3"><m:mods/><m:mods/></m:s>', "mods", 2),
        ('<mods xmlns="http://www.loc.gov/mods/v3"/>', "mods", 1),
        ("<ead><c><c/></c></ead>", "ead", 1),
        ('<mets xmlns="http://www.loc.gov/METS/"><mods xmlns="x"/></mets>', "mets", 1),
        ('<r><resource xmlns="http://datacite.org/schema/kernel-4"/></r>', "datacite", 1),
        ('<q><doi_record xmlns="http://www.crossref.org/qrschema/3.0"/></q>', "crossref", 1),
        (f"<all>{DC}{DC}{DC}</all>", "oai_dc", 3),
        ("<books><info/><book><t/></book><book><t/><t/></book></books>", "xml", 2),
        ("<books><info/><book><t/></book><book/></books>", "xml", 2),
        ("<book><author/><author/></book>", "xml", 1),
        ("<?xml version='1.0'?><b/><?xml version='1.0'?><b/><!-- > --><?a b?>", "xml", 2),
    ],
)
def test_records_are_found_by_the_names_of_their_elements(data: str, form: str, count: int) -> None:
    records, faults = items(data.encode())
    assert ([record.form for record in records], faults) == ([form] * count, [])


def test_an_element_and_an_encoding_can_be_declared() -> None:
    data = "<a><b><c>č</c></b><b/><d><c>ž</c></d></a>"
    assert [record.xml for record in items(data.encode(), element="c")[0]] == [
        '<c xmlns="">č</c>',
        '<c xmlns="">ž</c>',
    ]
    declared = f'<?xml version="1.0" encoding="windows-1250"?>{data}'.encode("windows-1250")
    for bytes_ in (
        declared,
        data.encode("utf-16"),
        data.encode("utf-8-sig"),
        data.encode("utf-16-le"),
    ):
        assert recognise(bytes_) == next(form for form in FORMS if form.name == "xml")
        assert items(bytes_, element="d")[0][0].xml == '<d xmlns=""><c>ž</c></d>'
    element = items(data.encode("cp852"), encoding="cp852", element="c")[0][0].content
    assert isinstance(element, etree._Element)
    assert element.text == "č"


def test_pages_are_not_taken_for_records_and_cut_files_are_not_whole() -> None:
    for page in (b"<!doctype html><html><p>", b"<html/>", b"<urlset/>", b"plain", b"< x"):
        assert recognise(page) is None
    for cut in (collection(marc(1), marc(2))[:-30], collection(marc(1))[:-2], b"<a><b>"):
        records = read(io.BytesIO(cut), ReadOptions())
        with pytest.raises(RecordsError, match="cut off"):
            list(records)
