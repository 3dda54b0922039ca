"""Platform answers: what a platform sent of a dataset, kept verbatim beside its files.

The responses are a WARC. Values of the description are kept with the response that has them. Pure.
"""

import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from builder.filesets.item import FilesetPlatformItem, PlatformAnswer
from builder.filesets.strategies.warc import WarcRecords

ANSWERS = "platform-"
"""How the name of the WARC begins, below a dataset's prefix."""

_LARGEST = 4 << 20
"""Bytes of a document in which values are looked for."""
_DIGITS = 12
_TELLING = 6
"""Characters of a text that hardly stands for something else in a document."""
_NAMES = {
    "title": ("title", "name"),
    "creators": ("creator", "author", "contributor", "name"),
    "licences": ("licen", "rights"),
    "doi": ("doi", "identifier"),
    "version": ("version", "/id", "recid"),
    "edition": ("version", "edition"),
}
"""Parts of the names that platforms give to fields."""

Documents = Sequence[tuple[str, Any]]


def pack(item: FilesetPlatformItem) -> tuple[str, bytes]:
    """Return the name of the WARC, which depends on its content, and its bytes."""
    sink = io.BytesIO()
    names = (item.platform_name, item.platform_domain, item.platform_id)
    about = f"answers about {' '.join(name for name in names if name)}"
    records = WarcRecords(sink, f"{ANSWERS}answers.warc.gz", item.sent[0].at, about)
    for answer in item.sent:
        records.exchange(answer)
    data = sink.getvalue()
    return f"{ANSWERS}{hashlib.sha256(data).hexdigest()[:_DIGITS]}.warc.gz", data


def describe(item: FilesetPlatformItem) -> dict[str, Any]:
    """Return title, creators, licences, DOI and version, each as `value` and `source`.

    The source is the URL of the response that has the value, with a JSON Pointer (RFC 6901) as its
    fragment. It is None if no response has the value as it stands.
    """
    # The answers of the DOI registry come first, those of the platform later.
    documents = [found for one in reversed(item.sent) if (found := _parse(one)) is not None]
    told = item.description

    def value(field: str, text: str | None, *others: str | None) -> dict[str, str | None] | None:
        sources = (_find(documents, one, _NAMES[field]) for one in (text, *others) if one)
        return {"value": text, "source": next(filter(None, sources), None)} if text else None

    every: dict[str, Any] = {
        "title": value("title", told.title),
        "creators": [value("creators", one.name, one.family, one.orcid) for one in told.creators],
        "licences": [
            value("licences", one.spdx or one.name or one.url, one.name, one.url)
            for one in told.licences
        ],
        "doi": value("doi", told.doi),
        "version": value("version", item.version),
        "edition": value("edition", told.version),
    }
    return {name: one for name, one in every.items() if one}


def _parse(answer: PlatformAnswer) -> tuple[str, Any] | None:
    """Return the URL and the document of a response, None if it is not JSON or too large."""
    if answer.packed is None:
        return None
    data = zlib.decompressobj().decompress(answer.packed, _LARGEST + 1)
    try:
        return (answer.url, json.loads(data)) if len(data) <= _LARGEST else None
    except (ValueError, RecursionError):
        return None


def _find(documents: Documents, text: str, names: Sequence[str]) -> str | None:
    """Return the place of a text, best below one of the names; a short text must be below one.

    Case does not count, nor what precedes a DOI in its URL.
    """
    wanted = text.casefold()
    elsewhere = None
    for url, document in documents:
        for pointer, value in _walk(document):
            found = " ".join(str(value).split()).casefold()
            is_doi = wanted.startswith("10.") and found.endswith((f":{wanted}", f"/{wanted}"))
            if found != wanted and not is_doi:
                continue
            if any(name in pointer.casefold() for name in names):
                return f"{url}#{pointer}"
            elsewhere = elsewhere or f"{url}#{pointer}"
    return elsewhere if len(text) >= _TELLING else None


def _walk(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield the texts and numbers of a document with their JSON Pointers, in its order."""
    stack = [("", document)]
    while stack:
        pointer, value = stack.pop()
        if isinstance(value, dict):
            escaped = ((n.replace("~", "~0").replace("/", "~1"), one) for n, one in value.items())
            stack += reversed([(f"{pointer}/{name}", one) for name, one in escaped])
        elif isinstance(value, list):
            stack += reversed([(f"{pointer}/{at}", one) for at, one in enumerate(value)])
        elif isinstance(value, str | int) and not isinstance(value, bool):
            yield pointer, value
