"""Schemas: whether a record that is served as it is, is valid in its format.

A schema is `schemas/PREFIX.rng` or `.xsd` in an operator's folder of templates, or in ours: there
are those of oai_dc and of MODS. MARC is checked by the rules of MARC21slim.xsd without its XML.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from lxml import etree

from builder.sources.records.record import MarcRecord, SourceRecord
from functions.oai.format import TEMPLATES, find_file
from functions.snapshot.errors import ConfigurationError

Places = Sequence[Path]
_LEADER = re.compile(
    r"[\d ]{5}[\dA-Za-z ][\dA-Za-z][\dA-Za-z ]{3}[2 ]{2}[\d ]{5}[\dA-Za-z ]{3}(4500|    )"
)
_FIELD = re.compile(
    r"00[1-9A-Za-z]\|\||(?:0(?:[1-9A-Z][0-9A-Z]|[1-9a-z][0-9a-z])|[1-9A-Z][0-9A-Z]{2}|"
    r"[1-9a-z][0-9a-z]{2})\|[\da-z ]{2}\|[!-~]+"
)
"""Tag, indicators and codes of subfields, with bars between them."""
_match_field = lru_cache(20_000)(_FIELD.fullmatch)


def has_schema(prefix: str, places: Places = (TEMPLATES,)) -> bool:
    """Return whether records in a format are checked; the others are to be named as unchecked."""
    return prefix in ("marc21", "unimarc") or _open_schema(prefix, tuple(places)) is not None


def indent_xml(text: str) -> str:
    """Return an element as people read it."""
    element = etree.fromstring(text)
    etree.indent(element)
    return etree.tostring(element, encoding="unicode")


def check_xml(prefix: str, element: etree._Element, places: Places = (TEMPLATES,)) -> str | None:
    """Return what is invalid in an element of a format; None if nothing is, or it is unchecked."""
    schema = _open_schema(prefix, tuple(places))
    if schema is None or schema.validate(element):
        return None
    return str(getattr(schema.error_log.last_error, "message", "not valid"))


def check_record(record: SourceRecord, prefix: str, places: Places = (TEMPLATES,)) -> str | None:
    """Return what is invalid in a record as its file has it, as `check_xml` does."""
    content = record.content
    if isinstance(content, etree._Element):
        return check_xml(prefix, content, places)
    if not isinstance(content, MarcRecord):
        return None
    if not _LEADER.fullmatch(content.leader):
        return f"leader {content.leader!r}"
    for tag, indicators, _, subfields in content.fields:
        codes = "".join([code for code, _ in subfields])
        if not _match_field(f"{tag}|{indicators}|{codes}"):
            return f"field {tag!r} with indicators {indicators!r} and subfields {codes!r}"
    return None


@cache
def _open_schema(prefix: str, places: tuple[Path, ...]) -> Any:
    for file in (f"{prefix}.rng", f"{prefix}.xsd"):
        if path := find_file(places, "schemas", file):
            try:
                document = etree.parse(path, etree.XMLParser(no_network=True))
                return (etree.RelaxNG if path.suffix == ".rng" else etree.XMLSchema)(document)
            except etree.LxmlError as error:
                raise ConfigurationError(f"{path}: {error}") from error
    return None
