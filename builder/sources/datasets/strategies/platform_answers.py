"""Platform answers: what a platform sent of a dataset, kept verbatim beside its files.

The responses are a WARC. Values of the description are kept with the response that has them. Pure.
"""

import hashlib
import io
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from builder.sources.datasets.item import FilesetPlatformItem, PlatformAnswer
from builder.sources.datasets.platforms.pages.head import read_biblio
from builder.sources.datasets.strategies.warc import WarcRecords

ANSWERS = "platform-"
"""How the name of the WARC begins, below a dataset's prefix."""

_LARGEST = 4 << 20
"""Bytes of a document in which values are looked for."""
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

_DOI = re.compile(r"(?<=[:/])10\.")
"""Where a DOI may begin in its URL."""

Places = Mapping[str, Sequence[str]]
"""Places of each text, in lower case: URL of the response and JSON Pointer."""


def pack(item: FilesetPlatformItem) -> tuple[str, bytes]:
    """Return the name of the WARC, which depends on its content, and its bytes."""
    sink = io.BytesIO()
    names = (item.platform_name, item.platform_domain, item.platform_id)
    about = f"answers about {' '.join(name for name in names if name)}"
    records = WarcRecords(sink, f"{ANSWERS}answers.warc.gz", item.sent[0].last.at, about)
    for answer in item.sent:
        records.exchange(answer)
    data = sink.getvalue()
    return f"{ANSWERS}{hashlib.sha256(data).hexdigest()[:12]}.warc.gz", data


def describe(item: FilesetPlatformItem) -> dict[str, Any]:
    """Return title, creators, licences, DOI and version, each as `value` and `source`.

    The source is the URL of the response that has the value, with a JSON Pointer (RFC 6901) as its
    fragment unless it is a page. It is None if no response has the value as it stands.
    """
    # The answers of the DOI registry come first, those of the platform later.
    places = _find_places(filter(None, map(_parse, reversed(item.sent))))
    about = item.description

    def value(field: str, text: str | None, *others: str | None) -> dict[str, str | None] | None:
        sources = (_find(places, words, _NAMES[field]) for words in (text, *others) if words)
        return {"value": text, "source": next(filter(None, sources), None)} if text else None

    every: dict[str, Any] = {
        "title": value("title", about.title),
        "creators": [value("creators", p.name, p.family, p.orcid) for p in about.creators],
        "licences": [
            value("licences", row.spdx or row.name or row.url, row.name, row.url)
            for row in about.licences
        ],
        "doi": value("doi", about.doi),
        "version": value("version", item.version),
        "edition": value("edition", about.version),
    }
    return {name: sources for name, sources in every.items() if sources}


def _parse(answer: PlatformAnswer) -> tuple[str, Any] | None:
    """Return the URL and the document of a response, None if it is neither JSON nor a page.

    The URL of JSON ends in `#`, because a pointer follows. Too large a document is None.
    """
    if answer.packed is None:
        return None
    data = zlib.decompressobj().decompress(answer.packed, _LARGEST + 1)
    if len(data) > _LARGEST:
        return None
    try:
        return f"{answer.last.url}#", json.loads(data)
    except (ValueError, RecursionError):
        if not data.lstrip().startswith(b"<"):
            return None
    url, headers = answer.last.url, answer.last.headers
    links = ", ".join(value for name, value in headers if name.lower() == "link")
    return url, read_biblio(data, url, link=links)


def _find_places(documents: Iterable[tuple[str, Any]]) -> Places:
    """Return where texts and numbers stand, in order; a DOI also without what precedes it."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for url, document in documents:
        for pointer, value in _walk(document):
            place = url + pointer if url.endswith("#") else url
            text = " ".join(str(value).split()).casefold()
            for words in {text, *(text[match.start() :] for match in _DOI.finditer(text))}:
                places[words].append(place)
    return places


def _find(places: Places, text: str, names: Sequence[str]) -> str | None:
    """Return the place of a text, best below one of the names; a short text must be below one.

    Case does not count, nor what precedes a DOI in its URL.
    """
    listed = places.get(text.casefold(), ())
    for place in listed:
        if any(name in place.partition("#")[2].casefold() for name in names):
            return place
    return listed[0] if listed and len(text) >= _TELLING else None


def _walk(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield the texts and numbers of a document with their JSON Pointers, in its order."""
    stack = [("", document)]
    while stack:
        pointer, value = stack.pop()
        if isinstance(value, dict):
            escaped = ((n.replace("~", "~0").replace("/", "~1"), v) for n, v in value.items())
            stack += reversed([(f"{pointer}/{name}", member) for name, member in escaped])
        elif isinstance(value, list):
            stack += reversed([(f"{pointer}/{at}", member) for at, member in enumerate(value)])
        elif isinstance(value, str | int) and not isinstance(value, bool):
            yield pointer, value
