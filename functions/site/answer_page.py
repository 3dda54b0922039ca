"""The page of an OAI-PMH answer: the request, its meaning, the next step, and the XML."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from functions.http.http_message import FormError
from functions.oai.answer import ErrorList, OneRecord, RecordList, SetList
from functions.oai.application import render_document
from functions.oai.request import VERBS
from functions.reading.repository import PublishedRecord
from functions.site.fields import read_title, shorten
from functions.site.page import PageError, PageRequest, SitePage

_LONGEST = 24_000
"""Characters of XML that the page shows."""
_RECORDS, _LARGEST = 50, 180_000
"""Records and sets of a list that the page shows, from which its links go on, and their bytes."""


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """The header of a record in an answer, and the record's title if the answer has records."""

    identifier: str
    title: str
    datestamp: str
    deleted: bool


def show(request: PageRequest) -> SitePage:
    """Return the page of the answer to the request in the arguments."""
    try:
        # As they were sent: an argument that is repeated is an error of the protocol.
        pairs = [pair for pair in request.call.pairs if pair[0] != "lang"]
    except FormError as error:
        raise PageError(request.text("error.form")) from error
    address = request.address
    provider, renderer = request.parts.provider, request.parts.renderer
    answer, body = render_document(
        provider, renderer, pairs, address.oai, _RECORDS, largest=_LARGEST
    )
    text, content = body.decode(), answer.content
    arguments = dict(pairs)
    verb = arguments.pop("verb", "")
    records: Sequence[PublishedRecord] = ()
    if isinstance(content, RecordList):
        records = content.records
    elif isinstance(content, OneRecord):
        records = (content.record,)
    resumption = content.resumption if isinstance(content, RecordList | SetList) else None
    token = resumption.text if resumption else ""
    links = {
        "view": address.answer(verb, resumptionToken=token),
        "raw": address.request(verb, resumptionToken=token),
        "token": token,
    }
    values: dict[str, Any] = {
        "verb": verb if verb in VERBS else "",
        "arguments": list(arguments.items()),
        "raw": address.request(verb, **arguments),
        "response_date": answer.response_date,
        "xml": text[:_LONGEST],
        "is_cut": len(text) > _LONGEST,
        "faults": content.faults if isinstance(content, ErrorList) else (),
        "headers": [_header(record) for record in records[:_RECORDS]],
        "sets": content.sets if isinstance(content, SetList) else (),
        "next": links if token else None,
        "size": (resumption.cursor, resumption.size) if resumption else None,
    }
    return SitePage("answer.html", values["verb"] or request.text("answer.title"), values)


def _header(record: PublishedRecord) -> HeaderLine:
    stamp = record.datestamp.strftime("%Y-%m-%dT%H:%M:%SZ")
    title = shorten(read_title(record)) if record.fields and not record.deleted else ""
    return HeaderLine(record.identifier, title, stamp, record.deleted)
