"""XML of answers, without the records that cannot be rendered.

The renderer leaves such records out. If it leaves out a whole page, the list continues with its
next page: a `<ListRecords>` needs at least one record (OAI-PMH 2.0, section 4.5), and an error
would end the harvest. Tokens, cursors and sizes count the omitted records.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from functions.oai.answer import Answer, ErrorList, OneRecord, RecordList
from functions.oai.errors import NO_FORMAT, NO_RECORDS, OaiFault
from functions.oai.provider import Provider
from functions.oai.render.render import NothingRenderedError, Renderer
from functions.oai.render.sheet import Boundless, Room
from functions.snapshot.errors import StoreError

_LOG = logging.getLogger("sheaf")

_MOST = 100_000  # records, so that a request ends even if a crosswalk fails for every record
_STRETCH = 2_000  # records at once, if pages are shorter


def document(
    provider: Provider,
    renderer: Renderer,
    pairs: Sequence[tuple[str, str]],
    url: str,
    limit: int | None = None,
    fits: Callable[[bytes], bool] = lambda body: True,
    most: int = _MOST,
    largest: int | None = None,
) -> tuple[Answer, bytes]:
    """Return the answer to the decoded pairs of a request to `url`, and its XML in UTF-8.

    `limit` shortens the page of a list, and so does `largest`, in bytes of records. A record whose
    document does not fit even alone counts as one that cannot be rendered. Raises StoreError if the
    store fails, or if `most` records in a row cannot be rendered.
    """
    base_url = provider.base_url(url)

    def room() -> Room:
        return Boundless() if largest is None else renderer.sheet(base_url, largest)

    asked = answer = provider.answer(pairs, url, limit, room)
    size, passed, is_page = limit, 0, True
    while passed < most:
        try:
            body = renderer.document(answer)
            _check_size(answer, body, fits)
        except NothingRenderedError:
            content = answer.content
            if not (isinstance(content, RecordList) and not content.final and content.resumption):
                failure = replace(answer, content=ErrorList((_fault(answer),)))
                return failure, renderer.document(failure)
            # The next records are tried in batches, each twice as long as the one before.
            passed += content.count
            pairs = [("verb", content.verb), ("resumptionToken", content.resumption.text)]
            size, is_page = min(2 * content.count, _STRETCH), False
        else:
            if is_page:
                return answer, body
            size, is_page = limit, True  # some of the batch can be rendered: by pages from here on
        answer = _in_place(provider.answer(pairs, url, size, room), asked)
    raise StoreError(f"{passed} records in a row could not be rendered; the log has the errors")


def _check_size(answer: Answer, body: bytes, fits: Callable[[bytes], bool]) -> None:
    """Raise NothingRenderedError if a single record is too large to be sent."""
    content = answer.content
    if isinstance(content, OneRecord):
        record = content.record
    elif isinstance(content, RecordList) and content.count == 1:
        record = content.records[0]
    else:
        return
    if not fits(body):
        _LOG.error("%s is left out: %d bytes of XML are too large", record.identifier, len(body))
        raise NothingRenderedError(record.identifier)


def _fault(answer: Answer) -> OaiFault:
    """Return the error for an answer without any record left and no next page."""
    if isinstance(answer.content, RecordList):
        return OaiFault(NO_RECORDS, "The matching records cannot be rendered in that format.")
    return OaiFault(NO_FORMAT, "This record cannot be rendered in that format.")


def _in_place(found: Answer, asked: Answer) -> Answer:
    """Return the answer to a later token as the answer to the original request.

    It keeps the original cursor, and no cache may keep it permanently.
    """
    content = found.content
    if isinstance(content, RecordList) and isinstance(asked.content, RecordList):
        rest, begun = content.resumption, asked.content.resumption
        if rest is not None and begun is not None:
            rest = replace(rest, cursor=begun.cursor)
        content = replace(content, resumption=rest, pinned=False)
    return replace(found, arguments=asked.arguments, content=content)
