"""Rendering: the crosswalk of captures, what XML forbids, and formats as data."""

import shutil
from html import unescape
from pathlib import Path

import markupsafe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from functions.oai import format as formats
from functions.oai.answer import Answer, OneRecord, RecordList
from functions.oai.format import TEMPLATES
from functions.oai.render.render import NothingRenderedError, Renderer
from functions.oai.render.template_filters import escape
from functions.reading.repository import PublishedRecord
from functions.snapshot.errors import ConfigurationError
from tests.extent import examples
from tests.functions.oai.client import START
from tests.functions.oai.validity import DC, valid
from tests.functions.reading.memory import EMPTY_CAPTURE

DUBLIN_CORE = formats.load().get("oai_dc")
_FORBIDDEN = dict.fromkeys([*(c for c in range(0x20) if chr(c) not in "\t\n\r"), 0xFFFE, 0xFFFF])
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def record(**fields) -> PublishedRecord:
    values = {**EMPTY_CAPTURE, "url": "http://a.cz/", **fields}
    return PublishedRecord(1, "oai:a.b:c", "capture", START, False, (), values)


def document(*records: PublishedRecord) -> bytes:
    return Renderer().document(
        Answer(
            START,
            "http://a/oai",
            (("verb", "ListRecords"), ("metadataPrefix", "oai_dc")),
            RecordList(records, DUBLIN_CORE, None),
        )
    )


def dc(*records: PublishedRecord) -> list[tuple[str, str | None]]:
    root = valid(document(*records))
    return [(e.tag.removeprefix(DC), e.text) for e in root.iter(DC + "*")]


def test_a_capture_with_everything():
    assert dc(
        record(
            title='Zprávy <b> & "věci"',
            url="http://a.cz/?a=1&b=2",
            content_digest="3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            fetch_date="2007-11-05T12:00:00Z",
            content_mime_type="text/plain",
            content_mime_detected="application/pdf",
            content_languages="cs, en,,de",
            warc_filename="crawl-1.warc.gz",
            warc_record_offset=0,
            url_host_registered_domain="a.cz",
            refers_to_url="http://b.cz/",
        )
    ) == [
        ("title", 'Zprávy <b> & "věci"'),
        ("identifier", "http://a.cz/?a=1&b=2"),
        ("identifier", "urn:sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
        ("date", "2007-11-05T12:00:00Z"),
        ("type", "Text"),
        ("format", "text/plain"),
        ("format", "application/pdf"),
        ("language", "cs"),
        ("language", "en"),
        ("language", "de"),
        ("source", "crawl-1.warc.gz#0"),
        ("publisher", "a.cz"),
        ("relation", "http://b.cz/"),
    ]


def test_a_capture_with_nothing():
    bare = [("title", "http://a.cz/"), ("identifier", "http://a.cz/")]
    assert dc(record()) == bare
    assert dc(record(**{k: "" for k, v in EMPTY_CAPTURE.items() if k != "url"})) == bare


@pytest.mark.parametrize(
    ("mime", "expected"),
    [
        ("text/html", "Text"),
        ("Text/HTML; charset=x", "Text"),
        ("text/css", "Software"),
        ("image/x-unheard-of", "Image"),
        ("video/mp4", "MovingImage"),
        ("application/x-shockwave-flash", "InteractiveResource"),
        ("application/x-unheard-of", None),
        ("nonsense", None),
    ],
)
def test_types_come_from_a_table(mime, expected):
    assert dict(dc(record(content_mime_type=mime))).get("type") == expected


def test_a_type_that_was_detected_counts_first():
    found = dict(dc(record(content_mime_type="text/html", content_mime_detected="image/png")))
    assert found["type"] == "Image"


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"title": _TEXT, "content_mime_type": _TEXT}), min_size=1, max_size=4
    )
)
def test_any_text_makes_a_document(rows):
    records = [record(**{k: v.strip() and v for k, v in row.items()}) for row in rows]
    data = document(*records)
    assert not any(b < 0x20 and b not in b"\t\n\r" for b in data)
    root = etree.fromstring(data)
    for row, element in zip(rows, root.iter(DC + "title"), strict=True):
        clean = "".join(
            c for c in row["title"].strip() and row["title"] if c >= " " or c in "\t\n\r"
        )
        clean = clean.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
        clean = clean.replace("\r\n", "\n").replace("\r", "\n")
        if clean:
            assert (element.text or "") == clean


def test_surrogates_are_replaced():
    assert dict(dc(record(title="a\ud800b")))["title"] == "a?b"


def test_what_imitates_the_place_of_the_items_is_but_text():
    answer = Answer(
        START,
        "http://a/oai",
        (("verb", "ListRecords"), ("resumptionToken", "\x00items\x00")),
        RecordList((record(),), DUBLIN_CORE, None),
    )
    assert len(list(valid(Renderer().document(answer)).iter(DC + "title"))) == 1


def test_live_and_deleted_and_other_kinds_in_one_page():
    dead = PublishedRecord(2, "oai:a.b:d", "capture", START, True, ("a:b",))
    page = valid(document(record(), dead, record(title="x")))
    assert [e.get("status") for e in page.iter("{*}header")] == [None, "deleted", None]
    assert len(list(page.iter("{*}metadata"))) == 2


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TEMPLATES, tmp_path / "templates"))


def test_a_crosswalk_that_asks_for_a_column_that_is_not_there(templates: Path, caplog):
    (templates / "crosswalks" / "capture-oai_dc.xml").write_text("<a>{{ nope }}</a>")
    answer = Answer(START, "http://a/oai", (), OneRecord(record(), DUBLIN_CORE))
    with pytest.raises(NothingRenderedError):
        Renderer(templates).document(answer)
    assert "capture-oai_dc.xml asks for nope, which items of this kind do not have" in caplog.text


def test_no_table_of_formats_is_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError):
        formats.load(tmp_path)


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("<>&\"'; ampltgq#39"))
def test_a_value_is_escaped_as_markupsafe_does(text: str) -> None:
    assert escape(text) == str(markupsafe.escape(text))
    read = etree.fromstring(f"<a>{escape(text.translate(_FORBIDDEN))}</a>").text or ""
    # XML 1.0, section 2.11: a reader makes every line end a line feed
    assert read == text.translate(_FORBIDDEN).replace("\r\n", "\n").replace("\r", "\n")
    assert unescape(escape(text)) == text
