"""MARCXML (http://www.loc.gov/MARC21/slim): of a record, and a record of it."""

import re

from lxml import etree

from builder.sources.records.record import MarcField, MarcRecord

NAMESPACE = "http://www.loc.gov/MARC21/slim"
_SPECIAL = re.compile(r"[&<>\"\r\t\n]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def escape(text: str) -> str:
    """Return a text as it stands in content or in an attribute: it is read again as it was."""
    return _SPECIAL.sub(lambda match: _ESCAPES.get(match[0]) or f"&#{ord(match[0])};", text)


def write_marcxml(record: MarcRecord) -> str:
    """Return the `record` element of a record whose texts can be XML."""
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
            subfields = tuple(
                (part.get("code", ""), part.text or "")
                for part in child.iterchildren("{*}subfield")
            )
            fields.append(MarcField(tag, indicators, "", subfields))
    if leader is None and not fields:
        raise ValueError("it has neither a leader nor fields of MARC")
    return MarcRecord((leader or "").ljust(24)[:24], tuple(fields))
