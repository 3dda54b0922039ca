"""Outlines of records."""

from xml.etree import ElementTree

from builder.commands.demo.outline import outline

RECORD = """<record xmlns="http://www.openarchives.org/OAI/2.0/">
<header><identifier>oai:a.b:1</identifier><datestamp>2026-01-01T00:00:00Z</datestamp></header>
<metadata><x:text xmlns:x="u" xmlns:y="http://w3.org/s" y:place="far" id="1">
 <x:title> One
   line </x:title><x:part ref="2"/><x:raw>Title: A
Abstract: B</x:raw><x:long>{}</x:long></x:text></metadata>
<about><x xmlns="z">never</x></about></record>"""


def test_an_element_a_line() -> None:
    assert outline(ElementTree.fromstring(RECORD.format("word " * 40))) == [
        "oai:a.b:1  2026-01-01T00:00:00Z",
        "  text id=1",
        "    title",
        "      One",
        "      line",
        "    part ref=2",
        "    raw",
        "      Title: A",
        "      Abstract: B",
        "    long " + "word " * 16 + "...",
    ]


def test_a_deleted_record_is_a_line() -> None:
    head, _, _ = RECORD.partition("<metadata>")
    text = head.replace("<header>", '<header status="deleted">') + "</record>"
    assert outline(ElementTree.fromstring(text)) == ["oai:a.b:1  2026-01-01T00:00:00Z  deleted"]
