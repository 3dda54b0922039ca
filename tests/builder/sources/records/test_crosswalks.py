"""Crosswalks: what each makes of a record, and that it is valid by the format's schema."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from builder.sources.records.crosswalks import CrosswalkError, list_tables, load, trim_punctuation
from builder.sources.records.paths import PathError, compile_path, compile_pattern
from builder.sources.records.record import MarcField, MarcRecord, SourceRecord
from builder.sources.records.record_forms import form_of, read_forms
from builder.sources.records.schemas import check_record, check_xml, has_schema
from functions.oai.format import TEMPLATES
from functions.snapshot.errors import ConfigurationError
from tests.e2e.conftest import make_home

DATA = Path(__file__).parents[5] / "shared" / "data"
CONTEXT = {"identifier": "oai:a.cz:1", "url": "https://a.cz/1", "repository": "A library"}
DECLARED = {"rights": "https://creativecommons.org/licenses/by/4.0/", "language": "ces"}
FIELDS = (
    MarcField("001", data="ocm1"),
    MarcField("008", data="950101s1995    nyu           000 0 eng  "),
    MarcField("020", "  ", subfields=(("a", "0851315216 (pbk.)"), ("a", "0851315224"))),
    MarcField(
        "100", "1 ", subfields=(("a", "Němcová, B.,"), ("d", "1820-1862."), ("e", "author."))
    ),
    MarcField("245", "10", subfields=(("a", "Babička :"), ("b", "a < b & c /"), ("c", "B. N."))),
    MarcField("260", "  ", subfields=(("a", "Praha :"), ("b", "Argo,"), ("c", "c1995."))),
    MarcField("650", " 0", subfields=(("a", "Grandmothers"), ("x", "Fiction."))),
    MarcField("856", "40", subfields=(("u", "http://a.cz/full"),)),
)


def marc(*fields: MarcField, leader: str = "01142cam a2200301 a 4500") -> SourceRecord:
    return SourceRecord("record 1", "marc", MarcRecord(leader, fields or FIELDS), "")


def xml(text: str, form: str) -> SourceRecord:
    return SourceRecord("element 1", form, etree.fromstring(text), text)


def columns(**texts: str) -> SourceRecord:
    content = {name: tuple(text.split(";")) for name, text in texts.items()}
    return SourceRecord("row 1", "columns", content, "")


def values(document: str, name: str) -> list[str]:
    return [str(e.text) for e in etree.fromstring(document).iter(f"{{*}}{name}")]


@pytest.mark.parametrize(
    ("path", "expected"),
    {
        "001": ["ocm1"],
        "leader/6": ["a"],
        "008/35-37": ["eng"],
        "020$a": ["0851315216 (pbk.)", "0851315224"],
        "245$ab": ["Babička : a < b & c /"],
        "650$ax(--)": ["Grandmothers--Fiction."],
        "650": ["Grandmothers Fiction."],
        "856[40]$u": ["http://a.cz/full"],
        "856[?1]$u": [],
        "650[_0]$a": ["Grandmothers"],
        "999$a": [],
        "'Text'": ["Text"],
    }.items(),
)
def test_paths_of_marc(path: str, expected: list[str]) -> None:
    assert compile_path(path)(marc()) == expected


def test_paths_of_xml_and_of_columns() -> None:
    record = xml(
        '<r xmlns:z="urn:z" id="7"><z:title> A <!-- no -->\n<i>b</i></z:title>'
        "<p><n>X</n><f>Y</f></p><p><n>Z</n></p></r>",
        "xml",
    )
    assert compile_path("title")(record) == compile_path("*:title")(record) == ["A b"]
    assert compile_path("z:title/i | @id")(record) == ["7", "b"]
    assert compile_path("p -> concat(n, '-', f)")(record) == ["X-Y", "Z-"]
    assert compile_path("w:title")(record) == []
    assert compile_path("count(p)")(record) == ["2"]
    assert compile_path("name|title")(columns(title="a;b")) == ["a", "b"]


def test_a_pattern_gives_one_result_for_each_value() -> None:
    assert compile_pattern("{001}/{020$a}")(marc())[1] == "ocm1/0851315224"
    assert compile_pattern("type:{leader/6}")(marc()) == ["type:a"]
    assert compile_pattern("all")(marc()) == ["all"]
    assert compile_pattern("{001}{999$a}")(marc()) == []


@pytest.mark.parametrize(
    ("path", "record"), [("title", marc()), ("//[", xml("<a/>", "xml")), ("f(1)", xml("<a/>", ""))]
)
def test_a_wrong_path_is_an_error_of_one_line(path: str, record: SourceRecord) -> None:
    with pytest.raises(PathError, match=r"^[^\n]+$"):
        compile_path(path)(record)


def test_marc_to_dublin_core() -> None:
    document = load("marc21-oai_dc")(marc(), CONTEXT)
    assert values(document, "title") == ["Babička : a < b & c"]
    assert values(document, "creator") == ["Němcová, B., 1820-1862"]
    assert values(document, "date") == ["1995"]
    assert values(document, "identifier") == [
        *("https://a.cz/1", "http://a.cz/full", "0851315216", "0851315224")
    ]
    assert values(document, "language") == ["eng"]


def test_what_is_otherwise_counts_without_the_field_before_it() -> None:
    record = marc(*(field for field in FIELDS if field.tag != "008"))
    assert values(load("marc21-oai_dc")(record, CONTEXT), "date") == ["c1995"]


def test_marc_to_mods_is_valid() -> None:
    document = load("marc21-mods")(marc(), CONTEXT)
    assert check_xml("mods", etree.fromstring(document)) is None
    assert values(document, "subTitle") == ["a < b & c"]
    assert values(document, "roleTerm") == ["author"]
    assert '<placeTerm type="code" authority="marccountry">nyu</placeTerm>' in document
    with pytest.raises(CrosswalkError, match=r"lacks a title \(245\)"):
        load("marc21-mods")(marc(MarcField("001", data="1")))


_TEXT = st.text(st.characters(codec="utf-8"), max_size=9)
_FIELDS = st.builds(
    lambda tag, indicators, texts: MarcField(tag, indicators, subfields=tuple(texts)),
    st.sampled_from(["773", "490", "700", "041", "024", "505", *(f.tag for f in FIELDS[2:])]),
    st.sampled_from(["  ", "40", "7 ", "1 "]),
    st.lists(st.tuples(st.sampled_from("abcdxyzutw4e2"), _TEXT), max_size=4),
)


@given(st.lists(_FIELDS, max_size=9), st.text("acdkop us0", min_size=24, max_size=24))
def test_whatever_marc_has_the_result_is_valid(fields: list[MarcField], leader: str) -> None:
    record = marc(FIELDS[4], MarcField("005", data=leader[:16]), *fields, leader=leader)
    for name in ("marc21-mods", "marc21-oai_dc"):
        crosswalk = load(name)
        element = etree.fromstring(crosswalk(record, CONTEXT))
        assert check_xml(crosswalk.prefix, element) is None
        assert all(text.strip() for text in element.itertext())


def test_forbidden_characters_are_removed_and_reported() -> None:
    faults: list[str] = []
    document = load("fields-oai_dc")(columns(title="a\x01b\n\ufffec"), faults=faults)
    assert values(document, "title") == ["ab\nc"]
    assert faults == ["characters that XML forbids were removed: U+0001, U+FFFE"]


def test_declared_fields_replace_those_of_the_form() -> None:
    record = columns(title="T", who="A;B", author="C")
    assert values(load("fields-oai_dc")(record), "creator") == ["C"]
    declared = load("fields-oai_dc", fields={"creator": "who", "type": "'Text'"})
    assert values(declared(record), "creator") == ["A", "B"]
    assert values(declared(record), "type") == ["Text"]
    assert declared.digest != load("fields-oai_dc").digest


def test_unimarc_has_its_own_form() -> None:
    record = marc(MarcField("200", "1 ", subfields=(("a", "Le titre"),)))
    assert (form_of(record).prefix, form_of(marc()).prefix) == ("unimarc", "marc21")
    assert values(load(form_of(record).oai_dc)(record), "title") == ["Le titre"]


def test_what_a_record_lacks_is_declared_or_named() -> None:
    edm = load("oai_dc-edm")
    with pytest.raises(CrosswalkError, match=r"^lacks rights that are a URI"):
        edm(marc(), CONTEXT)
    assert "http://creativecommons.org/licenses/by/4.0/" in edm(marc(), {**CONTEXT, **DECLARED})
    declared = load("oai_dc-edm", fields={name: f"'{text}'" for name, text in DECLARED.items()})
    assert declared(marc(), CONTEXT) == edm(marc(), {**CONTEXT, **DECLARED})
    with pytest.raises(CrosswalkError, match="lacks a title, a creator, a date, a type"):
        load("oai_dc-oai_openaire")(columns(subject="x"), CONTEXT)


STYLE = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><xsl:param name="url"/>
  <xsl:template match="/"><t xmlns="urn:t" xsi:schemaLocation="urn:t http://a.cz/t.xsd">
  <xsl:value-of select="{}"/></t></xsl:template></xsl:stylesheet>"""


def test_a_stylesheet_of_the_operator_runs_without_files(tmp_path: Path) -> None:
    (tmp_path / "own.xsl").write_text(STYLE.format("concat(//column[@name='a'], $url)"))
    (tmp_path / "reads.xsl").write_text(STYLE.format(f"document('file://{tmp_path}/own.xsl')"))
    (tmp_path / "bad.xsl").write_text("<a/>")
    own = load("own.xsl", (tmp_path, TEMPLATES))
    assert (own.namespace, own.schema) == ("urn:t", "http://a.cz/t.xsd")
    assert values(own(columns(a="1 & 2"), CONTEXT), "t")[0].strip() == "1 & 2https://a.cz/1"
    with pytest.raises(CrosswalkError, match=r"reads\.xsl: "):
        load("reads.xsl", (tmp_path,))(columns(a="1"))
    for name in ("bad.xsl", "absent"):
        with pytest.raises(ConfigurationError, match=name):
            load(name, (tmp_path,))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{ name = "t", paths = "001" }', "paths is no key"),
        ('{ name = "t", path = "0" }', "expected a path of MARC"),
        ('{ name = "t", path = "001", map = "m" }', "lacks 'm'"),
        ('{ name = "t", path = "001", match = "(" }', "own.toml"),
        ('{ path = "001" }', "lacks 'name'"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, line: str, message: str) -> None:
    head = 'prefix = "t"\nschema = "s"\nnamespace = "urn:t"\nreads = ["marc"]\nroot = "t"\n'
    (tmp_path / "own.toml").write_text(f"{head}row = [{line}]\n[namespaces]\n")
    with pytest.raises(ConfigurationError, match=message):
        load("own", (tmp_path,))


def test_each_table_and_form_compiles() -> None:
    assert {load(name).prefix for name in list_tables()} == {
        *("oai_dc", "mods", "qdc", "oai_openaire", "edm")
    }
    for form in read_forms().values():
        record = {"marc": marc(), "unimarc": marc(), "columns": columns(a="")}.get(form.name)
        for path in (*form.identifier, *(p for ps in form.fields.values() for p in ps)):
            compile_path(path)(record or xml("<a/>", form.name))


def test_a_record_is_checked_by_its_schema() -> None:
    assert has_schema("mods")
    assert has_schema("marc21")
    assert not has_schema("ead")
    assert check_record(marc(), "marc21") is None
    assert check_record(marc(leader="x" * 24), "marc21") == f"leader {'x' * 24!r}"
    assert "'1'" in str(
        check_record(marc(MarcField("245", "1", subfields=(("a", "t"),))), "marc21")
    )
    mods = '<mods xmlns="http://www.loc.gov/mods/v3">{}</mods>'
    assert check_record(xml(mods.format("<note>n</note>"), "mods"), "mods") is None
    assert check_record(xml(mods.format("<nota/>"), "mods"), "mods")
    dc = '<dc xmlns="http://www.openarchives.org/OAI/2.0/oai_dc/">{}</dc>'
    assert check_record(xml(dc.format(""), "oai_dc"), "oai_dc") is None
    assert check_record(xml(dc.format("<title/>"), "oai_dc"), "oai_dc")


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "Babička :": "Babička",
        "Wiley,": "Wiley",
        "History.": "History",
        "Smith, J.": "Smith, J.",
        "1820-1862.": "1820-1862",
        "24 cm.": "24 cm.",
        " / ": "",
    }.items(),
)
def test_punctuation_of_isbd(text: str, expected: str) -> None:
    assert trim_punctuation(text) == expected


def test_the_command_shows_a_record_in_each_format(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    file = tmp_path / "books.xml"
    file.write_text(
        '<c xmlns:m="http://www.loc.gov/mods/v3">'
        + "".join(
            f"<m:mods><m:note>{n}</m:note><m:identifier>{n}</m:identifier></m:mods>" for n in "12"
        )
        + "</c>"
    )
    shown = home("crosswalk", file).out
    assert all(f"\n{prefix}: <" in shown for prefix in ("mods", "oai_dc"))
    assert "\nqdc (no schema, not checked): <" in shown
    assert "edm: lacks a title or description" not in shown  # a note is one
    assert "\n  record-lacks: edm: lacks a language" in shown
    table = '[[records]]\nname = "b"\nfiles = "*.xml"\nformats = { oai_dc = "fields-oai_dc" }\n'
    home.config.write_text(home.config.read_text() + table)
    (shown,) = json.loads(home("crosswalk", file, "--record", "oai:b.cz:b,2", "--json").out)[
        "entries"
    ]
    assert "<dc:identifier>2</dc:identifier>" in shown["metadata"]
    assert "none of its 2 records is 3" in home("crosswalk", file, "--record", "3").err
    assert home("crosswalk", tmp_path).code == 2
    file.write_text("<c><m:mods></c>")
    assert (
        "it has no record that Sheaf reads; element 1, line 1: it is" in home("crosswalk", file).err
    )


class _Nearby(etree.Resolver):
    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:
        name = system_url.rpartition("/")[2]
        for folder in ("xsd/oai", "xsd/common", "profiles/openaire"):
            if (DATA / folder / name).is_file():
                return self.resolve_filename(str(DATA / folder / name), context)
        return None


def _open_schema(path: str) -> Callable[[Any], None]:
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_Nearby())
    if "qualified" in path:  # it has no namespace of its own: what includes it gives it one
        text = (
            '<schema xmlns="http://www.w3.org/2001/XMLSchema" '
            'targetNamespace="http://worldcat.org/xmlschemas/qdc-1.0/">'
            '<include schemaLocation="qualifieddc.xsd"/></schema>'
        )
        return etree.XMLSchema(etree.fromstring(text, parser)).assertValid
    return etree.XMLSchema(etree.parse(DATA / path, parser)).assertValid


SCHEMAS = {
    "oai_dc": "xsd/oai/oai_dc.xsd",
    "oai_dc-qdc": "xsd/common/qualifieddc.xsd",
    "oai_dc-oai_openaire": "profiles/openaire/schemas/4.0/openaire.xsd",
    "oai_dc-edm": "profiles/edm/EDM.xsd",
}


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no schemas and records at {DATA}")
@pytest.mark.parametrize(("name", "schema"), SCHEMAS.items())
def test_what_is_made_of_real_records_is_valid(name: str, schema: str) -> None:
    files = [
        (form, p)
        for form in ("ead", "datacite")
        for p in (DATA / "records" / form).glob("[adm]*.xml")
    ]
    elements = [(form, etree.parse(path).getroot()) for form, path in files]
    answer = etree.parse(DATA / "records/static-repository/ListRecords.oai_dc.xml")
    elements += [("oai_dc", element) for element in answer.iter("{*}dc")]
    records = [xml(etree.tostring(element, encoding="unicode"), form) for form, element in elements]
    row = columns(title="T;U", author="A", year="1999", type="Book", language="en")
    assert_valid, count = _open_schema(schema), 0
    image = marc(*FIELDS, leader="01142ckm a2200301 a 4500")
    for record in (marc(), image, row, *records):
        form = form_of(record)
        if name == "oai_dc" == form.name:
            continue
        crosswalk = load(form.oai_dc if name == "oai_dc" else name)
        try:
            document = crosswalk(record, {**CONTEXT, **DECLARED, "type": "Text"})
        except CrosswalkError:  # one has no date
            continue
        assert_valid(etree.fromstring(document))
        count += 1
    assert count >= 12
