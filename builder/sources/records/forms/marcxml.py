"""MARCXML (http://www.loc.gov/MARC21/slim): of a record, and a record of it."""

import re
from collections.abc import Iterable, Iterator, Sequence

from lxml import etree

from builder.sources.records.record import (
    MarcField,
    MarcRecord,
    RecordFault,
    RecordItem,
    SourceRecord,
)

NAMESPACE = "http://www.loc.gov/MARC21/slim"
_OPENING = (
    f'<record xmlns="{NAMESPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    f'xsi:schemaLocation="{NAMESPACE} http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd">'
)
"""The beginning of a record; metadata name their schema (OAI-PMH 2.0, section 2.5)."""
UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot have."""
_SPECIAL = re.compile("[^ !#-%'-;=?-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_ESCAPES |= {character: f"&#{ord(character)};" for character in "\t\n\r"}

Repair = tuple[str | None, str]
"""The tag of a field, None for the record, and what was wrong with it."""


def escape(text: str) -> str:
    """Return a text as it stands in content or an attribute, to be read again as it was.

    Raises KeyError for a character that XML cannot have.
    """
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], text)


def write_marcxml(record: MarcRecord) -> str:
    """Return the `record` element of a record. Raises KeyError as `escape` does."""
    xml, elements, quotes = _render(record.leader, record.fields)
    # Most records have nothing to escape: then all characters of markup are ours.
    is_plain = xml.isprintable() and "&" not in xml and xml.count('"') == quotes
    if is_plain and xml.count("<") == xml.count(">") == 2 * elements:
        return xml
    fields = (
        (
            escape(tag),
            [*map(escape, marks)],
            escape(data),
            [(escape(c), escape(t)) for c, t in parts],
        )
        for tag, marks, data, parts in record.fields
    )
    return _render(escape(record.leader), fields)[0]


def _render(
    leader: str, fields: Iterable[tuple[str, Sequence[str], str, Sequence[tuple[str, str]]]]
) -> tuple[str, int, int]:
    """Return a `record` element as it is, and how many elements and quotation marks its markup has.

    `fields` are as in MarcRecord.
    """
    parts = [f"{_OPENING}<leader>{leader}</leader>"]
    elements, quotes = 2, _OPENING.count('"')
    for tag, marks, data, subfields in fields:
        if not marks:
            parts.append(f'<controlfield tag="{tag}">{data}</controlfield>')
            elements, quotes = elements + 1, quotes + 2
            continue
        texts = [f'<subfield code="{code}">{text}</subfield>' for code, text in subfields]
        parts.append(f'<datafield tag="{tag}" ind1="{marks[0]}" ind2="{marks[1]}">')
        parts += texts
        parts.append("</datafield>")
        elements, quotes = elements + 1 + len(texts), quotes + 6 + 2 * len(texts)
    parts.append("</record>")
    return "".join(parts), elements, quotes


def read_marcxml(element: etree._Element) -> MarcRecord:
    """Return the record of a `record` element, in whatever namespace. Raises ValueError."""
    leader, fields = None, []
    for child in element.iterchildren("{*}leader", "{*}controlfield", "{*}datafield"):
        name, tag = etree.QName(child).localname, child.get("tag", "").zfill(3)
        if name == "leader":
            leader = child.text or ""
        elif name == "controlfield":
            fields.append(MarcField(tag, data=child.text or ""))
        else:
            indicators = (child.get("ind1") or " ")[:1] + (child.get("ind2") or " ")[:1]
            parts = child.iterchildren("{*}subfield")
            subfields = tuple([(part.get("code", ""), part.text or "") for part in parts])
            fields.append(MarcField(tag, indicators, "", subfields))
    if leader is None and not fields:
        raise ValueError("it has neither a leader nor fields of MARC")
    return MarcRecord((leader or "").ljust(24)[:24], tuple(fields))


def fit_leader(text: str, repairs: list[Repair]) -> str:
    """Return a leader of 24 characters; another size is a repair."""
    if len(text) != 24:
        repairs.append(("leader", f"it has not 24 characters: {text!r}"))
    return text.ljust(24)[:24]


def make_marc(
    place: str, record: MarcRecord, repairs: list[Repair], digest: bytes, xml: str = ""
) -> Iterator[RecordItem]:
    """Yield a record of MARC, its MARCXML being `xml` or written, after a fault for each repair.

    What XML cannot have is left out of its texts.
    """
    try:
        xml = xml or write_marcxml(record)
    except KeyError:
        fields = []
        for tag, indicators, data, subfields in record.fields:
            pairs = tuple([(UNFIT.sub(" ", c), UNFIT.sub("", text)) for c, text in subfields])
            tag_, indicators_ = UNFIT.sub(" ", tag), UNFIT.sub(" ", indicators)
            fields.append(MarcField(tag_, indicators_, UNFIT.sub("", data), pairs))
            if fields[-1] != (tag, indicators, data, subfields):
                repairs.append((tag_, "characters that XML cannot have are left out"))
        record = MarcRecord(UNFIT.sub(" ", record.leader), tuple(fields))
        xml = write_marcxml(record)
    for field, detail in repairs:
        yield RecordFault(place, "repaired-record", field, detail)
    is_deleted = record.leader[5] == "d"
    yield SourceRecord(place, "marc", record, xml, deleted=is_deleted, digest=digest)
