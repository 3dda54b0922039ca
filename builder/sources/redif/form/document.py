"""Documents: the published form of a template, with data of its series and archive."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from builder.sources.redif.form.template import Template
from functions.snapshot import oai_name
from functions.snapshot.seal import write_compact

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BELONGING = re.compile(r"((?:RePEc|ReLIS|mapin):[a-z]{3})(?::(?:([a-z\d]{6})(?=:|\Z))?|\Z)")
_WORD = re.compile(r"ReDIF-(\w+) 1\.0")
ARTICLE = "ReDIF-Article 1.0"
"""The type of templates whose series is a journal."""
ARCHIVE, SERIES = "ReDIF-Archive 1.0", "ReDIF-Series 1.0"
"""The types of templates that others inherit from."""


@dataclass(frozen=True, slots=True)
class Inheritable:
    """What the documents of an archive or series inherit from it."""

    name: str | None = None
    restriction: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> "Inheritable":
        """Return the inheritable fields of an archive or series, legal in XML."""
        fields = remove_illegal(fields)
        names = _texts(fields, "name")
        nodes = [node for node in fields.get("provider", ()) if isinstance(node, dict)]
        return Inheritable(
            names[0] if names else None,
            tuple(dict.fromkeys(_texts(fields, "restriction"))),
            tuple(dict.fromkeys([text for node in nodes for text in _texts(node, "name")])),
        )


NOTHING = Inheritable()
"""The inheritance of an unknown series or archive."""


def document_head(template: Template) -> bytes:
    """Return the head of the document of a template: JSON that is open for the members of `tail`.

    It has no character that XML 1.0 forbids.
    """
    members = {
        "handle": template.handle,
        "handle_written": template.handle_written,
        "type": template.type,
        "type_written": template.type_written,
        "valid": template.valid,
        "text": template.text,
        "fields": template.structure,
    }
    # All its texts come from `text`.
    if not template.text.replace("\n", " ").isprintable():
        members = remove_illegal(members)
    return write_compact(members)[:-1]


def document_sets(template: Template) -> tuple[str, ...]:
    """Return the most specific sets of a template with a handle, sorted."""
    archive, series = archive_and_series(template.handle or "")
    place = [oai_name.join_set(*(series or archive or "").split(":"))] if archive else []
    match = _WORD.fullmatch(template.type or "")
    word = match[1].lower() if match else "other"  # such as "paper"
    return tuple(sorted([*place, oai_name.join_set("type", word)]))


def tail(tist: int, source: str, handle: str, inherited: bytes) -> bytes:
    """Return the end of a template's document, behind its head.

    `source` is its file, and `inherited` the result of `inherit`.
    """
    archive, series = archive_and_series(handle)
    members = {"tist": tist, "archive": archive, "series": series, "source": remove_illegal(source)}
    return b",%b,%b}" % (write_compact(members)[1:-1], inherited)


def inherit(series: Inheritable, archive: Inheritable, *, is_article: bool) -> bytes:
    """Return the members of a document that a template inherits, as JSON without its braces.

    `series` and `archive` are NOTHING if they are unknown, or the template itself.
    """
    members = {
        "restriction": list(dict.fromkeys((*series.restriction, *archive.restriction))),
        "journal": series.name if is_article else None,
        "series_name": series.name,
        "provider": list(series.provider),
    }
    return write_compact(members)[1:-1]


def archive_and_series(handle: str) -> tuple[str | None, str | None]:
    """Return the archive and the series in a canonical handle, None for what it lacks."""
    match = _BELONGING.match(handle)
    if match is None:
        return None, None
    return match[1], f"{match[1]}:{match[2]}" if match[2] else None


def remove_illegal(value: Any) -> Any:
    """Remove the characters that XML 1.0 forbids from the texts of a JSON value."""
    if isinstance(value, str):
        return _ILLEGAL.sub("", value) if not value.isprintable() else value
    if isinstance(value, dict):
        return {name: remove_illegal(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [remove_illegal(entry) for entry in value]
    return value


def _texts(fields: Mapping[str, Any], name: str) -> Sequence[str]:
    return [text for text in fields.get(name, ()) if isinstance(text, str)]
