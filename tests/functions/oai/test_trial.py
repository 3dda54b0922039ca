"""An operator's own formats: what is wrong with one is told when the server starts."""

from pathlib import Path
from typing import Any

import pytest

from functions.oai import format as formats
from functions.oai.render import check, schemas
from functions.oai.render.render import Renderer
from functions.snapshot.errors import ConfigurationError
from tests.functions.oai.client import Client, configured, content
from tests.functions.oai.conftest import holding
from tests.functions.reading.memory import MemoryRepository, capture

pytestmark = pytest.mark.shared(2)

ROW = """[[format]]
prefix = "simple"
schema = "simple.xsd"
namespace = "urn:simple"
crosswalks = { capture = "simple.xml" }
"""
HEAD = '<page xmlns="urn:simple">'
GOOD = f"{HEAD}{{{{ title or url }}}}</page>"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return a folder with one format of one's own."""
    folder = tmp_path / "mine"
    for name in ("crosswalks", "schemas", "tables"):
        (folder / name).mkdir(parents=True)
    (folder / "formats.toml").write_text(ROW)
    (folder / "crosswalks" / "simple.xml").write_text(GOOD)
    (folder / "schemas" / "simple.xsd").write_text("<schema/>")
    return folder


def refusal(own: Path, **settings: Any) -> str:
    """Return what is said of the folder when a server is to start with it.

    It offers the one format besides Dublin Core, for each that is offered is tried first.
    """
    given = {"formats_offered": ["simple"], **settings}
    with pytest.raises(ConfigurationError) as caught:
        Client(MemoryRepository(), formats_templates=str(own), **given)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_row_and_a_file_are_a_format(own):
    client = Client(
        holding({"oai:example.org:a": capture("http://a.cz/?a&b")}), formats_templates=str(own)
    )
    body = content(client.raw("verb=ListRecords&metadataPrefix=simple")).decode()
    assert f"<metadata>\n{HEAD}http://a.cz/?a&amp;b</page>\n</metadata>" in body
    told = client.get("ListMetadataFormats")
    assert told.text("metadataPrefix") == ["oai_dc", "capture", "mods", "simple"]
    assert told.text("schema")[-1] == "https://oai.example.org/schema/simple.xsd"
    assert content(client.raw("", path="/schema/simple.xsd")) == b"<schema/>"
    assert client.raw("", path="/schema/capture.xsd")["statusCode"] == 200


def test_a_row_of_ones_own_takes_the_place_of_the_shipped_one(own):
    (own / "formats.toml").write_text(ROW.replace("simple", "mods", 1))
    rows = formats.load(own=own).rows
    assert [(row.prefix, row.namespace) for row in rows][1:] == [
        ("capture", "urn:x-sheaf:capture:1"),
        ("mods", "urn:simple"),
        ("harvest", "urn:x-sheaf:harvest:1"),
        ("redif", "urn:x-sheaf:redif:1"),
        ("amf", "http://amf.openlib.org"),
        ("oai_datacite", "http://schema.datacite.org/oai/oai-1.1/"),
        ("mets", "http://www.loc.gov/METS/"),
    ]


def test_a_crosswalk_and_a_table_of_ones_own_take_the_place_of_the_shipped_ones(own):
    (own / "formats.toml").unlink()
    shipped = formats.TEMPLATES / "crosswalks" / "capture-oai_dc.xml"
    text = shipped.read_text().replace("{{ title or url }}", "My {{ title or url }}")
    (own / "crosswalks" / "capture-oai_dc.xml").write_text(text)
    (own / "tables" / "dcmi-type.toml").write_text('"text/*" = "Dataset"\n')
    item = capture("http://a.cz/", content_mime_type="text/html")
    client = Client(holding({"oai:example.org:a": item}), formats_templates=str(own))
    page = client.get("ListRecords", metadataPrefix="oai_dc")
    dc = "{http://purl.org/dc/elements/1.1/}"
    assert [e.text for e in page.root.iter(f"{dc}title", f"{dc}type")] == [
        "My http://a.cz/",
        "Dataset",
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("crosswalks/capture-oai_dc.xml", "{{ nope }}", "items of this kind have no nope;"),
        ("crosswalks/collection-oai_dc.xml", "<a>", "its output of every column is not XML"),
        ("tables/dcmi-type.toml", "a = ", "crosswalks/capture-oai_dc.xml, line "),
    ],
)
def test_what_takes_the_place_of_a_shipped_file_is_looked_over(own, name, text, expected):
    """Though the row is the shipped one, and all rows that are so are not tried otherwise."""
    (own / name).write_text(text)
    assert expected in refusal(own, formats_offered=[])


def test_what_is_shipped_is_not_tried_again(own, monkeypatch):
    tried = []
    monkeypatch.setattr(check, "check", lambda renderer, row, kind: tried.append(row.prefix))
    check.open_formats(configured(formats_templates=str(own)))
    assert tried == ["simple"]


def test_the_protocols_own_templates_are_not_the_operators(own):
    (own / "oai").mkdir()
    (own / "oai" / "error.xml").write_text("nonsense")
    assert Client(holding({}), formats_templates=str(own)).get("Nope").codes == ["badVerb"]


def test_what_a_crosswalk_includes_is_looked_over_too(own):
    crosswalks = own / "crosswalks"
    (crosswalks / "simple.xml").write_text(
        f'{HEAD}\n{{% include "crosswalks/part.xml" %}}\n{{{{ nope }}}}</page>'
    )
    assert refusal(own) == (
        "the template crosswalks/part.xml cannot be read: crosswalks/part.xml "
        "(crosswalks/simple.xml in oai/record.xml)"
    )
    (crosswalks / "part.xml").write_text("<a/>\n\n{{ fetch_date[9] }}\n")
    assert refusal(own).startswith(
        f"{crosswalks}/simple.xml, line 3: items of this kind have no nope;"
    )
    (crosswalks / "part.xml").write_text("<a/>\n\n{{ nope }}\n")
    assert refusal(own).startswith(
        f"{crosswalks}/part.xml, line 3: items of this kind have no nope;"
    )
    (crosswalks / "part.xml").write_text("<a/>\n{{ 1 / (position - 1) }}\n")
    (crosswalks / "simple.xml").write_text(
        f'{HEAD}\n{{% include "crosswalks/part.xml" %}}\n</page>'
    )
    assert refusal(own) == (
        f"{crosswalks}/part.xml, line 2: division by zero, in a record of every column"
    )
    (crosswalks / "part.xml").write_text('{% include "crosswalks/simple.xml" %}\n')
    assert "which includes it" in refusal(own)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<page>\n{% if url %}\n</page>", "line 3: Unexpected end of template"),
        ("\n{{ url | }}", "line 2: expected token 'name'"),
        ("\n{% nope %}", "line 2: Encountered unknown tag 'nope'."),
        ("\n\n{{ url | shout }}", "line 3: there is no filter shout"),
        ("\n{% if url is loud %}{% endif %}", "line 2: there is no test loud"),
        (f"{HEAD}\n{{{{ ur }}}}</page>", "line 2: items of this kind have no ur; there are url, "),
        (f"{HEAD}\n{{{{ url | lookup('no') }}}}</page>", "line 2: there is no table tables/no"),
        (f"{HEAD}\n{{{{ 1 / 0 }}}}</page>", "line 2: division by zero"),
        (f"{HEAD}\n\n{{{{ title.nope }}}}</page>", "line 3: 'str object' has no attribute 'nope'"),
        (f"{HEAD}\n\n{{{{ title[3] }}}}</page>", "line 3: None has no element 3, in a record of N"),
        ("<page>{{ url }}</page>", "expected one element in the namespace urn:simple"),
        ('<page xmlns="urn:other"/>', "its output of every column has 1 in ['urn:other']"),
        (f"{HEAD}</page>{HEAD}</page>", "has 2 in ['urn:simple', 'urn:simple']"),
        (f"{HEAD}</page> and more", "has 1 in ['urn:simple'] and text"),
        ("{{ url }}", "has 0 in [] and text"),
        ("", "has 0 in []"),
        (f"{{% if title %}}{HEAD}</page>{{% endif %}}", "its output of NULLs only has 0 in []"),
        (f"{HEAD}</pages>", "its output of every column is not XML: mismatched tag, near '<page"),
        (f'<?xml version="1.0"?>\n{HEAD}</page>', "XML or text declaration not at start of entity"),
        (f"<!DOCTYPE page>\n{HEAD}</page>", "is not XML: not well-formed"),
        (f"{HEAD}<a:b/></page>", "unbound prefix"),
        ('<a:b xmlns:a="urn:simple"><c/></a:b>', "the element c has no namespace"),
        (f"{HEAD}{{{{ title | safe }}}}</page>", "is not XML: "),
        (f"{HEAD}{{{{ content_charset | safe }}}}</page>", "(is a value printed unescaped?)"),
        (f"{HEAD}{{% if not title %}}&{{% endif %}}</page>", "of NULLs only is not XML"),
    ],
)
def test_a_faulty_crosswalk_is_refused_at_the_start(own, text, expected):
    path = own / "crosswalks" / "simple.xml"
    path.write_text(text)
    told = refusal(own)
    assert told.startswith(str(path))
    assert expected in told


@pytest.mark.parametrize(
    "text",
    [
        f'{HEAD}\n<a>{{% include "crosswalks/part.xml" %}}</a></page>',
        f"{HEAD}\n{{% include 'crosswalks/part.xml' %}}\n</page>",
        f'{HEAD}\n{{%- include "crosswalks/part.xml" %}}\n</page>',
        f'{HEAD}\n{{% include "crosswalks/part.xml" -%}}\n</page>',
        f'{HEAD}\n{{% include "crosswalks/part.xml" %}} \n</page>',
        f'{HEAD}\n{{% include ["crosswalks/part.xml"] %}}\n</page>',
        f'{HEAD}\n{{% include "crosswalks/none.xml" ignore missing %}}\n</page>',
        f'{HEAD}\n{{% import "crosswalks/part.xml" as part %}}\n{{{{ part.a(url) }}}}</page>',
        f'{HEAD}\n{{% from "crosswalks/part.xml" import a %}}\n{{{{ a(url) }}}}</page>',
        '\n{% extends "crosswalks/part.xml" %}\n',
    ],
)
def test_what_is_not_seen_as_a_part_is_refused(own, text):
    """A change of such a part would not be noticed."""
    path = own / "crosswalks" / "simple.xml"
    path.write_text(text)
    (own / "crosswalks" / "part.xml").write_text("{% macro a(b) %}<a>{{ b }}</a>{% endmacro %}\n")
    told = refusal(own)
    assert told.startswith(f"{path}, line 2: ")
    assert '{% include "crosswalks/part.xml" %}' in told


def test_a_part_is_seen_at_the_end_of_a_line_and_in_the_middle_of_a_part(own):
    crosswalks = own / "crosswalks"
    crosswalks.joinpath("simple.xml").write_text(
        '{% include "crosswalks/macros.xml" %}\n'
        f'{HEAD}{{% include "crosswalks/part.xml" %}}\n{{{{ a(url) }}}}</page>'
    )
    crosswalks.joinpath("macros.xml").write_text(
        "{% macro a(b) %}<a>{{ b }}, {{ title }}</a>{% endmacro %}"
    )
    crosswalks.joinpath("part.xml").write_text("<b>{{ url }}</b>")
    items = {f"oai:example.org:{n}": capture(f"http://{n}.cz/<&", title=n) for n in "ab"}
    client = Client(holding(items), formats_templates=str(own))
    body = content(client.raw("verb=ListRecords&metadataPrefix=simple")).decode()
    for n in "ab":
        url = f"http://{n}.cz/&lt;&amp;"
        assert f"{HEAD}<b>{url}</b>\n<a>{url}, {n}</a></page>" in body


@pytest.mark.parametrize(
    "text",
    [
        '{{ url | lookup(table="t") }}',
        '{% set t = "t" %}{{ url | lookup(t) }}',
        '{{ url | lookup("t" ~ kind) }}',
        '{{ url | lookup(*["t"]) }}',
        '{{ url | lookup(**{"table": "t"}) }}',
        "{{ url | lookup }}",
        "{{ url | lookup(1) }}",
        '{{ url | lookup("t", "t") }}',
        '{{ [url] | map("lookup", "t") | join }}',
        '{{ [url] | map(*["lookup", "t"]) | join }}',
        '{% set f = "lookup" %}{{ [url] | map(f, "t") | join }}',
        "{% filter lookup(kind) %}text/html{% endfilter %}",
    ],
)
def test_a_table_that_is_not_seen_is_refused(own, text):
    """A change of such a table would not be noticed."""
    path = own / "crosswalks" / "simple.xml"
    path.write_text(f"{HEAD}\n{text}</page>")
    for name in ("t", "1", "tcapture", "capture"):
        (own / "tables" / f"{name}.toml").write_text('"text/*" = "x"\n')
    told = refusal(own)
    assert told.startswith(f"{path}, line 2: ")
    assert 'lookup("t")' in told


@pytest.mark.parametrize(
    ("kind", "text", "of"),
    [
        ("collection", "{% for one in operator %}{{ one | safe }}{% endfor %}", "texts full of"),
        (
            "collection",
            "{% for one in host.most %}{{ one.value | safe }}{% endfor %}",
            "texts full of",
        ),
        ("capture", "{{ repository_name | safe }}", "texts full of"),
        (
            "capture",
            '{{ url_surtkey | safe }}{% if fetch_date %}{{ fetch_date.split("-")[1] }}{% endif %}',
            "markup in url_surtkey",
        ),
        (
            "capture",
            '{% if content_mime_type == "text/html" %}{{ url_surtkey | safe }}{% endif %}',
            "markup in url_surtkey",
        ),
        (
            "capture",
            '{% if url %}{{ url.index(".cz") or repository_name | safe }}{% endif %}'
            "{{ repository_name | safe }}",
            "markup in repository_name",
        ),
    ],
)
def test_a_value_that_is_printed_unescaped_is_found(own, kind, text, of):
    (own / "formats.toml").write_text(ROW.replace("capture", kind))
    (own / "crosswalks" / "simple.xml").write_text(f"{HEAD}{text}</page>")
    assert f"its output of {of}" in refusal(own)


@pytest.mark.parametrize(
    "text",
    ['<a:b xmlns:a="urn:simple"><a:c><d xmlns=""><e/></d></a:c></a:b>', f"{HEAD}<c/></page>"],
)
def test_a_crosswalk_may_have_namespaces_of_any_kind(own, text):
    (own / "crosswalks" / "simple.xml").write_text(text)
    check.open_formats(configured(formats_templates=str(own)))


def test_a_crosswalk_may_map(own):
    (own / "crosswalks" / "simple.xml").write_text(
        f"{HEAD}{{{{ [url or 'a'] | map('upper') | join }}}}"
        "{{ [{'a': 'b'}] | map(attribute='a') | join }}</page>"
    )
    check.open_formats(configured(formats_templates=str(own)))


def test_a_faulty_whole_of_faultless_parts_is_refused(own):
    text = f"{HEAD}\n{{% block a %}}{{% endblock %}}</page>"
    (own / "crosswalks" / "simple.xml").write_text(f'{text}\n{{% include "crosswalks/part.xml" %}}')
    (own / "crosswalks" / "part.xml").write_text("\n\n{% block a %}{% endblock %}")
    assert refusal(own).startswith(f"{own}/crosswalks/part.xml, line 3: block 'a' defined twice")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[[format]]", "[[format", "formats.toml cannot be read: Expected ']]'"),
        ("[[format]]", "[format]", "formats.toml: expected only [[format]] rows"),
        ("prefix", "prefax", "line 1: {'prefax': 'simple'"),
        ('"simple"', '"sim ple"', "line 1: prefix is 'sim ple', expected letters"),
        ('"simple"', "5", "line 1: prefix is 5, expected letters"),
        ('"urn:simple"', '""', "line 1: namespace is '', expected a URI"),
        ('"simple.xsd"', '"none.xsd"', "line 1: schema is 'none.xsd', expected a URL, or"),
        ('"simple.xsd"', '"../formats.toml"', "line 1: schema is '../formats.toml', expected"),
        ('"simple.xsd"', '"http://a b"', "line 1: schema is 'http://a b', expected a URL"),
        (
            '"simple.xsd"',
            '"simple.txt"',
            "'simple.txt', expected a URL, or the name of an existing .xsd file",
        ),
        ('"simple.xml"', '"none.xml"', "line 1: the crosswalk of capture is 'none.xml', expected"),
        ('"simple.xml"', "3", "line 1: the crosswalk of capture is 3, expected"),
        (
            '{ capture = "simple.xml" }',
            '"simple.xml"',
            "line 1: expected crosswalks to be a table such as",
        ),
        (
            "capture =",
            "picture =",
            "simple has a crosswalk of picture, which is not a kind of item",
        ),
    ],
)
def test_a_faulty_row_is_refused_at_the_start(own, old, new, expected):
    assert ROW.count(old) >= 1
    (own / "formats.toml").write_text(ROW.replace(old, new, 1))
    (own / "schemas" / "simple.txt").write_text("<schema/>")
    assert expected in refusal(own)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"garbage", ", line 1: syntax error; expected XML in UTF-8"),
        (b"", ", line 1: no element found; expected XML in UTF-8"),
        (b"<schema>\n</scheme>", ", line 2: mismatched tag; expected XML in UTF-8"),
        (b"<schema>\n\xe9</schema>", ", line 2: invalid continuation byte; expected XML in UTF"),
        (
            '<?xml version="1.0" encoding="ISO-8859-2"?>\n<schema>č</schema>'.encode(),
            " declares the encoding ISO-8859-2, expected XML in UTF-8",
        ),
        (
            b'<?xml version="1.0" encoding="none"?><schema/>',
            " declares the encoding none, expected",
        ),
        ("<schema/>".encode("utf-16"), ", line 1: invalid start byte; expected XML in UTF-8"),
    ],
)
def test_a_faulty_schema_is_refused_at_the_start(own, data, expected):
    path = own / "schemas" / "simple.xsd"
    path.write_bytes(data)
    told = refusal(own)
    assert told.startswith(f"{path}{expected}")
    with pytest.raises(ConfigurationError, match=r"simple\.xsd"):
        check.digests(configured(formats_templates=str(own)))


def test_a_schema_is_published_as_it_is(own):
    data = '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<schema><!-- č --></schema>'.encode()
    (own / "schemas" / "simple.xsd").write_bytes(data)
    client = Client(MemoryRepository(), formats_templates=str(own))
    assert content(client.raw("", path="/schema/simple.xsd")) == data


DUBLIN_CORE = """[[format]]
prefix = "oai_dc"
schema = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
namespace = "http://www.openarchives.org/OAI/2.0/oai_dc/"

[format.crosswalks]
capture = "capture-oai_dc.xml"
collection = "collection-oai_dc.xml"
template = "template-oai_dc.xml"
fileset = "fileset-oai_dc.xml"
file = "file-oai_dc.xml"
"""


def test_a_row_of_dublin_core_may_have_crosswalks_of_ones_own(own):
    text = DUBLIN_CORE.replace("collection-oai_dc.xml", "mine.xml")
    (own / "formats.toml").write_text(text)
    shipped = formats.TEMPLATES / "crosswalks" / "collection-oai_dc.xml"
    (own / "crosswalks" / "mine.xml").write_bytes(shipped.read_bytes())
    found, _ = check.open_formats(configured(formats_templates=str(own)))
    assert found.rows[0].crosswalks["collection"] == "mine.xml"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("2.0/oai_dc.xsd", "2.0/dc.xsd", "expected http://www.openarchives.org/OAI/2.0/oai_dc.xsd"),
        ("OAI/2.0/oai_dc/", "OAI/2.0/dc/", "and http://www.openarchives.org/OAI/2.0/oai_dc/"),
        ('collection = "', 'box = "', "no crosswalk of collection, but must offer every record"),
        (
            'capture = "capture-oai_dc.xml"',
            "",
            "no crosswalk of capture, but must offer every record",
        ),
    ],
)
def test_dublin_core_is_not_to_be_taken_away(own, old, new, expected):
    assert old in DUBLIN_CORE
    (own / "formats.toml").write_text(DUBLIN_CORE.replace(old, new))
    told = refusal(own)
    assert told.startswith(f"{own}/formats.toml: oai_dc has ")
    assert expected in told


def test_a_prefix_stands_in_a_table_once(own):
    (own / "formats.toml").write_text(f"# mine\n{ROW}\n{ROW}")
    assert refusal(own) == f"{own}/formats.toml, line 8: a second row for simple; remove one"


def test_a_folder_or_a_prefix_that_is_not_there(own, tmp_path):
    assert refusal(tmp_path / "none") == (
        f"formats.templates is {tmp_path}/none, expected an existing folder"
    )
    assert refusal(own, formats_offered=["simple", "marc"]) == (
        "formats.offered names marc, which is not a format; "
        "known: oai_dc, capture, mods, harvest, redif, amf, oai_datacite, mets, simple"
    )


def test_a_damaged_table(own):
    (own / "tables" / "mine.toml").write_text("a = ")
    (own / "crosswalks" / "simple.xml").write_text(f"{HEAD}{{{{ url | lookup('mine') }}}}</page>")
    assert f"simple.xml, line 1: {own}/tables/mine.toml cannot be read: " in refusal(own)


def test_a_format_that_is_not_offered_is_not_tried(own):
    (own / "crosswalks" / "simple.xml").write_text("nonsense")
    check.open_formats(configured(formats_templates=str(own), formats_offered=["capture"]))


def test_a_crosswalk_may_ask_for_more_than_a_text_full_of_markup_has(own):
    text = f"{HEAD}{{% if url %}}{{{{ url.index('.cz') }}}}{{% endif %}}</page>"
    (own / "crosswalks" / "simple.xml").write_text(text)
    check.open_formats(configured(formats_templates=str(own)))


@pytest.mark.parametrize("row", formats.load().rows, ids=lambda row: row.prefix)
def test_what_is_shipped_passes_its_trial(row):
    """No server tries it at its start, for that takes a cold start some time."""
    renderer = Renderer()
    for kind in row.crosswalks:
        check.check(renderer, row, kind)
    assert schemas.schema_replies(renderer.places)
