"""What of an item is searched and shown: its texts, its title and its date."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from functions.reading import redif_fields
from functions.snapshot import documents

_DUBLIN_CORE = re.compile(r"<(?:\w+:)?(title|creator|identifier)(?:\s[^>]*)?>([^<]*)<")
_YEAR = re.compile(r"\d{4}")


def document_texts(kind: str, identifier: str, document: Mapping[str, Any]) -> list[str]:
    """Return the texts of an item other than a capture, the title first."""
    match kind:
        case "template":
            fields = document.get("fields")
            names = [n for c in ("author", "editor") for n in redif_fields.texts(fields, c, "name")]
            texts = [*redif_fields.titles(fields), *names, document.get("handle"), identifier]
        case "fileset" | "file":
            people = document.get("creators") or ()
            names = [str(person.get("name")) for person in people if isinstance(person, Mapping)]
            keys = [document.get("doi"), document.get("url"), identifier]
            texts = [document.get("title"), *names, *keys]
        case "harvested":
            parts = _dublin_core(document)
            ordered = sorted(parts, key=lambda part: part[0] != "title")
            texts = [*(text for _, text in ordered), document.get("id"), identifier]
        case _:
            texts = [document.get("name"), document.get("set_spec"), identifier]
    return list(dict.fromkeys(text for text in texts if isinstance(text, str) and text))


def harvested_title(document: Mapping[str, Any]) -> str | None:
    """Return the first title of a harvested record, if it has Dublin Core."""
    return next((text for name, text in _dublin_core(document) if name == "title" and text), None)


def document_date(kind: str, document: Mapping[str, Any]) -> str | None:
    """Return the date of publication, or None; it begins with the year."""
    match kind:
        case "template":
            date: Any = redif_fields.date(document.get("fields"))
        case "fileset" | "file":
            date = document.get("published")
        case "collection":
            date = document.get("last_date")
        case _:
            date = None
    return date if isinstance(date, str) and _YEAR.match(date) else None


def document_url(kind: str, document: Mapping[str, Any]) -> str | None:
    """Return the address of such an item, if its document has one."""
    match kind:
        case "template":
            url: Any = next(iter(redif_fields.texts(document.get("fields"), "file", "url")), None)
        case "fileset" | "file":
            url = document.get("url")
        case _:
            url = None
    return url if isinstance(url, str) else None


def read_document(kind: str, text: str | None) -> Mapping[str, Any]:
    """Return the fields of an item's document; empty if it is missing or invalid."""
    try:
        return documents.read(kind, text or "{}")
    except ValueError:
        return {}


def _dublin_core(document: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    elements: list[tuple[str, str]] = []
    for record in document.get("records") or ():
        metadata = record.get("metadata") if isinstance(record, Mapping) else None
        if isinstance(metadata, str):
            elements += ((n, html.unescape(t).strip()) for n, t in _DUBLIN_CORE.findall(metadata))
    return elements
