"""MARCXML (http://www.loc.gov/MARC21/slim): of a record, and a record of it."""

import re
from collections.abc import Iterator

from lxml import etree

from builder.sources.records.record import (
    MarcField,
    MarcRecord,
    RecordFault,
    RecordItem,
    SourceRecord,
)

NAMESPACE = "http://www.loc.gov/MARC21/slim"
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
    parts = [f'<record xmlns="{NAMESPACE}"><leader>{escape(record.leader)}</leader>']
    add = parts.append
    for tag, indicators, data, subfields in record.fields:
        if not indicators:
            add(f'<controlfield tag="{escape(tag)}">{escape(data)}</controlfield>')
            continue
        first, second = map(escape, indicators)
        add(f'<datafield tag="{escape(tag)}" ind1="{first}" ind2="{second}">')
        for code, text in subfields:
            add(f'<subfield code="{escape(code)}">{escape(text)}</subfield>')
        add("</datafield>")
    add("</record>")
    return "".join(parts)


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
