"""Outlines of OAI-PMH records: text with one line for each element."""

from collections.abc import Iterator
from textwrap import shorten
from urllib.parse import urlencode
from urllib.request import urlopen
from xml.etree import ElementTree

from functions.snapshot.errors import SheafError

_OAI = "{http://www.openarchives.org/OAI/2.0/}"
_WIDTH = 96  # characters of a line


class OutlineError(SheafError):
    """The endpoint has no such record."""


def get_record(endpoint: str, identifier: str, prefix: str) -> ElementTree.Element:
    """Return a record in the format `prefix`. Raises OutlineError if it does not exist."""
    query = {"verb": "GetRecord", "metadataPrefix": prefix, "identifier": identifier}
    with urlopen(f"{endpoint}?{urlencode(query)}", timeout=60) as answer:
        record = ElementTree.parse(answer).find(f".//{_OAI}record")
    if record is None:
        raise OutlineError(f"{endpoint} has no record of {identifier} in {prefix}")
    return record


def outline(record: ElementTree.Element) -> list[str]:
    """Return lines for the header and the metadata of a `record`; its `about` is left out.

    A line has an element's name and text; its children are indented below it.
    """
    header = record.find(f"{_OAI}header")
    assert header is not None
    status = header.get("status")
    lines = [
        f"{header.findtext(f'{_OAI}identifier')}  {header.findtext(f'{_OAI}datestamp')}"
        + (f"  {status}" if status else "")
    ]
    for metadata in record.findall(f"{_OAI}metadata"):
        for root in metadata:
            lines += _lines(root, "  ")
    return lines


def _lines(element: ElementTree.Element, indent: str) -> Iterator[str]:
    name = element.tag.rpartition("}")[2]
    text = element.text or ""
    if len(element) or "\n" not in text.strip():
        named = [f"{k}={v}" for k, v in element.items() if not k.startswith("{")]
        line = " ".join([name, *named, *text.split()])
        yield indent + shorten(line, _WIDTH - len(indent), placeholder=" ...")
    else:  # text in lines of its own, as a template is
        yield indent + name
        for line in text.strip().splitlines():
            yield f"{indent}  {shorten(line, _WIDTH - len(indent) - 2, placeholder=' ...')}"
    for child in element:
        yield from _lines(child, f"{indent}  ")
