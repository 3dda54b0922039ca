"""What a repository answers to a harvester, as values that JSON keeps."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

from lxml import etree

Ask = Callable[[str], bytes]
"""Returns the XML that answers a query string."""

_OAI = "{http://www.openarchives.org/OAI/2.0/}"
RECORDS, IDENTIFIERS, SETS = "ListRecords", "ListIdentifiers", "ListSets"


def collect(ask: Ask) -> list[list[Any]]:
    """Return the sets, the records in each format, and the lists that tokens continue."""
    found: list[list[Any]] = [["set", *one] for one in _list(ask, SETS)]
    prefixes = [
        e.text or "" for e in _parse(ask("verb=ListMetadataFormats")).iter(f"{_OAI}metadataPrefix")
    ]
    for prefix in prefixes:
        records = list(_list(ask, RECORDS, metadataPrefix=prefix))
        found += [["record", prefix, *one] for one in records]
        headers = list(_list(ask, IDENTIFIERS, metadataPrefix=prefix))
        assert headers == [[*one[:4], ""] for one in records], prefix
    for verb, some in (
        (RECORDS, {"metadataPrefix": "oai_dc"}),
        (SETS, {}),
        (IDENTIFIERS, {"metadataPrefix": "oai_dc", "set": "domain:org"}),
    ):
        _, token = _page(ask, verb, **some)
        if token:
            found.append(["token", verb, token, list(follow(ask, verb, token))])
    return found


def follow(ask: Ask, verb: str, token: str) -> Iterator[str]:
    """Yield what comes behind a token: identifiers of records, or sets."""
    while token:
        rows, token = _page(ask, verb, resumptionToken=token)
        yield from (row[0] for row in rows)


def headers(ask: Ask, **arguments: str) -> list[list[Any]]:
    """Return identifier, datestamp, deletion and sets of the records of a list; [] for none."""
    return [row[:4] for row in _list(ask, RECORDS, **arguments)]


def now(ask: Ask) -> str:
    """Return the response date: from when a harvester asks next."""
    return _parse(ask("verb=Identify")).findtext(f"{_OAI}responseDate") or ""


def _list(ask: Ask, verb: str, **arguments: str) -> Iterator[list[Any]]:
    rows, token = _page(ask, verb, **arguments)
    yield from rows
    while token:
        rows, token = _page(ask, verb, resumptionToken=token)
        yield from rows


def _page(ask: Ask, verb: str, **arguments: str) -> tuple[list[list[Any]], str]:
    root = _parse(ask(urlencode({"verb": verb, **arguments})))
    error = root.find(f"{_OAI}error")
    if error is not None:
        assert error.get("code") == "noRecordsMatch", etree.tostring(error)
        return [], ""
    (answer,) = root.iterchildren(f"{_OAI}{verb}")
    token = answer.findtext(f"{_OAI}resumptionToken") or ""
    if verb == SETS:
        return [
            [one.findtext(f"{_OAI}setSpec"), one.findtext(f"{_OAI}setName")]
            for one in answer.iterchildren(f"{_OAI}set")
        ], token
    return [_row(header) for header in answer.iter(f"{_OAI}header")], token


def _row(header: Any) -> list[Any]:
    metadata = header.getparent().find(f"{_OAI}metadata")
    canonical = b"" if metadata is None else etree.tostring(metadata[0], method="c14n")
    return [
        header.findtext(f"{_OAI}identifier"),
        header.findtext(f"{_OAI}datestamp"),
        header.get("status") == "deleted",
        [spec.text for spec in header.iterchildren(f"{_OAI}setSpec")],
        hashlib.sha256(canonical).hexdigest()[:12] if canonical else "",
    ]


def _parse(data: bytes) -> Any:
    return etree.fromstring(data)


def write(rows: list[list[Any]]) -> bytes:
    """Return the rows as JSON lines."""
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


def read(data: bytes) -> list[list[Any]]:
    """Parse the output of `write`."""
    return [json.loads(line) for line in data.splitlines()]
