"""Platform answers: what a platform sent of a dataset, kept verbatim beside its files.

The responses are a WARC. Values of the description are kept with the response that has them. Pure.
"""

import hashlib
import io
import json
import re
import zlib
from typing import Any

from builder.sources.datasets.item import FilesetPlatformItem, PlatformAnswer
from builder.sources.datasets.platforms.pages.head import read_biblio
from builder.sources.datasets.strategies.warc import WarcRecords

ANSWERS = "platform-"
"""How the name of the WARC begins, below a dataset's prefix."""

_LARGEST = 4 << 20
"""Bytes of a document in which values are looked for."""

_DOI = re.compile(r"(?<=[:/])10\.")
"""Where a DOI may begin in its URL."""


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

    The source is the URL of the response that has the value, and None if no response has it as it
    stands.
    """
    # The answers of the DOI registry come first, those of the platform later.
    sent = [(answer.last.url, _find_values(answer)) for answer in reversed(item.sent)]
    about = item.description

    def value(text: str | None, *others: str | None) -> dict[str, str | None] | None:
        wanted = (_fold(words) for words in (text, *others) if words)
        sources = (url for words in wanted for url, values in sent if words in values)
        return {"value": text, "source": next(sources, None)} if text else None

    every: dict[str, Any] = {
        "title": value(about.title),
        "creators": [value(p.name, p.family, p.orcid) for p in about.creators],
        "licences": [
            value(row.spdx or row.name or row.url, row.name, row.url) for row in about.licences
        ],
        "doi": value(about.doi),
        "version": value(item.version),
        "edition": value(about.version),
    }
    return {name: sources for name, sources in every.items() if sources}


def _find_values(answer: PlatformAnswer) -> frozenset[str]:
    """Return the texts and numbers in a response of JSON, or in the head of a page.

    They are in lower case, and those with a DOI also without what precedes it. Too large a document
    has none.
    """
    values: set[str] = set()
    stack = [_parse(answer)]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list | tuple):
            stack += value
        elif isinstance(value, str | int) and not isinstance(value, bool):
            text = _fold(str(value))
            values |= {text, *(text[match.start() :] for match in _DOI.finditer(text))}
    return frozenset(values)


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _parse(answer: PlatformAnswer) -> Any:
    """Return the document of a response, None if it is neither JSON nor a page, or too large."""
    if answer.packed is None:
        return None
    data = zlib.decompressobj().decompress(answer.packed, _LARGEST + 1)
    if len(data) > _LARGEST:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        if not data.lstrip().startswith(b"<"):
            return None
    url, headers = answer.last.url, answer.last.headers
    links = ", ".join(value for name, value in headers if name.lower() == "link")
    return read_biblio(data, url, link=links)
