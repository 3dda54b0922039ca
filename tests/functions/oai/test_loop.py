"""Loops: a page is what Jinja2 alone makes of each of its records, escaping by itself."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pytest

from functions.kinds import KINDS
from functions.oai.format import TEMPLATES
from functions.oai.render import template_filters as filters
from functions.oai.render.check import sample
from functions.oai.render.loop import RecordLoop, lines
from functions.oai.render.template import Templates
from functions.reading.record_rows import HEADER, Page
from functions.snapshot import instant

_WHEN = datetime(2007, 11, 5, 12, tzinfo=UTC)
_CONSTANTS = {"schema_location": "urn:a 100 % <b>", "repository_name": "Ob & chod"}
_MARKUP = ']]><a b="c">&d;\'%s \U0001f600'
CAPTURE = KINDS["capture"].template


def page(kind: str) -> Page:
    """Return records with every column, with NULLs, with markup, and a deleted one."""
    columns = KINDS[kind].columns
    full = {c.name: sample(c) for c in columns}
    empty: dict[str, Any] = {c.name: [] if c.type.endswith("[]") else None for c in columns}
    empty |= {c.name: full[c.name] for c in columns if c.type == "JSON"}
    hostile = {n: _MARKUP if isinstance(v, str) else v for n, v in full.items()}
    rows = [full, empty, hostile, full, dict.fromkeys(full), hostile]
    count = len(rows)
    return Page(
        {
            "position": list(range(1, count + 1)),
            "identifier": [f"oai:example.org:{n}&" for n in range(count)],
            "kind": [kind] * count,
            "datestamp": [_WHEN] * count,
            "deleted": [row is rows[4] for row in rows],
            "sets": [("a:b",), (), ("a:b", "c"), ("a:b",), ("d",), ("c",)],
            **{name: [row[name] for row in rows] for name in full},
        }
    )


def reference(templates: Templates, name: str, crosswalk: str, records: Page) -> str:
    """Return what Jinja2 alone makes of the records, one by one."""
    source = "".join(line for line, _, _ in lines(templates._read, name, crosswalk))
    template = templates._environment.from_string(source)
    found = []
    for position, record in enumerate(records):
        header = {one: getattr(record, one) for one in HEADER}
        fields = record.fields or {one: records.column(one)[position] for one in records.names}
        header["datestamp"] = instant.to_text(record.datestamp)
        found.append(template.render({**fields, **header, **_CONSTANTS}))
    return "".join(found)


def check(templates: Templates, name: str, crosswalk: str, records: Page) -> RecordLoop:
    loop = templates.loop(name, crosswalk)
    assert loop.render(records, _CONSTANTS) == reference(templates, name, crosswalk, records)
    return loop


@pytest.mark.parametrize(
    "crosswalk",
    [
        "capture-oai_dc",
        "capture-mods",
        "capture-capture",
        "template-oai_dc",
        "template-amf",
        "template-redif",
        "fileset-oai_dc",
        "fileset-oai_datacite",
        "fileset-mets",
    ],
)
def test_a_page_in_a_shipped_format(crosswalk: str) -> None:
    records = page(crosswalk.partition("-")[0])
    loop = check(Templates((TEMPLATES,), {}), CAPTURE, f"crosswalks/{crosswalk}.xml", records)
    assert loop._escaped


def test_a_page_of_headers() -> None:
    assert check(Templates((TEMPLATES,), {}), "oai/header.xml", "", page("capture"))._escaped


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("{% if url %}{{ url }}{% elif title %}{{ title }}{% else %}100 %{% endif %}\n", True),
        ("{% set url = title %}{{ url }}\n", True),
        ("{% for url in sets %}{{ url }}{{ loop.index }}{% endfor %}\n", True),
        ("{{ title or url or 'none' }}{{ url | upper }}{{ inherited }}\n", True),
        ("{% with a = url %}{% for s in sets %}{{ s }}{{ a }}{% endfor %}{% endwith %}\n", True),
        ("{% filter upper %}{{ url }}{% if url %}b{% endif %}{% endfilter %}\n", False),
        ("{% set a %}{{ url }}{% endset %}{{ a }}\n", False),
        ("{% for s in inherited or [] %}{{ s }}{% endfor %}\n", True),
        ("{% macro m(url) %}{{ url }}{% endmacro %}{{ m(title) }}\n", False),
        ("{% autoescape false %}{{ sets | length }}{% endautoescape %}\n", False),
        ("{{ '<b>' | safe }}{{ title | e }}{{ '<' }}{{ title | default('>') }}\n", True),
        ("{% for s in sets recursive %}{{ loop(s[1:]) }}{{ s }}{% endfor %}\n", False),
        ("{{ ('<b>' | safe) ~ title }}\n", False),
        ("{{ [title, '<b>' | safe] | join('&') }}\n", False),
        ("{{ sets | map('replace', 'a', '<' | safe) | list }}\n", False),
        ("{% set title = '<b>' | safe %}{{ title }}{{ url }}\n", True),
        ("{% for s in sets %}{{ s | attribute }}{% endfor %}{{ url | attribute }}\n", True),
    ],
)
def test_templates_of_an_operator(tmp_path: Path, source: str, plain: bool) -> None:
    (tmp_path / "crosswalks").mkdir()
    (tmp_path / "crosswalks" / "own.xml").write_text(source)
    templates = Templates((tmp_path, TEMPLATES), {})
    loop = check(templates, CAPTURE, "crosswalks/own.xml", page("capture"))
    assert bool(loop._escaped) is plain


def test_an_unknown_value_is_an_error_and_no_empty_text(tmp_path: Path) -> None:
    (tmp_path / "crosswalks").mkdir()
    (tmp_path / "crosswalks" / "own.xml").write_text("<a>\n{{ title.nope }}</a>")
    loop = Templates((tmp_path, TEMPLATES), {}).loop(CAPTURE, "crosswalks/own.xml")
    with pytest.raises(jinja2.UndefinedError) as caught:
        loop.render(page("capture"), _CONSTANTS)
    assert loop.place(caught.value) == ("crosswalks/own.xml", 2)


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b"],
        ["a&", "<b"],
        [None, "a&"],
        [None, None],
        [1, None, "'"],
        [True, 1.5],
        ["\x1f&"],
        [],
        [["a&"], ("b",)],
    ],
)
def test_values_are_escaped_at_once_as_one_by_one(column: list[Any]) -> None:
    assert [*filters.escape_all(column)] == [filters.escape(value) for value in column]
