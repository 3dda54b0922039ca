"""Documents: an answer and its XML, where a record that cannot be made does not spoil the rest.

The renderer leaves such a record out. Where none is left, a list goes on with its next page, for a
`<ListRecords>` holds at least one record (OAI-PMH 2.0, section 4.5) and an error would end the
harvest; tokens, cursors and sizes count what was left out.
"""

from collections.abc import Sequence
from dataclasses import replace

from functions.oai.answer import Answer, Content, Failure, RecordList
from functions.oai.errors import NO_FORMAT, NO_RECORDS, Fault
from functions.oai.provider import Provider
from functions.oai.render import NothingLeft, Renderer
from functions.snapshot.errors import StoreError

_PAGES = 10  # so that a request has an end where a crosswalk fails for everything


def document(
    provider: Provider,
    renderer: Renderer,
    pairs: Sequence[tuple[str, str]],
    url: str,
    limit: int | None = None,
) -> tuple[Answer, bytes]:
    """Return the answer to decoded pairs that came to `url`, and its XML in UTF-8.

    Raises StoreError where the store gives no answer, or page after page holds nothing that could
    be made.
    """
    answer = provider.answer(pairs, url, limit)
    for _ in range(_PAGES):
        try:
            return answer, renderer.document(answer)
        except NothingLeft:
            answer = _beyond(provider, answer, url, limit)
    raise StoreError(f"of {_PAGES} pages in a row no record could be made; the log says why")


def _beyond(provider: Provider, answer: Answer, url: str, limit: int | None) -> Answer:
    """Return what is answered in place of an answer of which nothing is left."""
    content = answer.content
    if not isinstance(content, RecordList):
        fault = Fault(NO_FORMAT, "This record cannot be given in that format.")
    elif content.resumption and content.resumption.text:
        rest = [("verb", content.verb), ("resumptionToken", content.resumption.text)]
        found = provider.answer(rest, url, limit)
        return replace(found, arguments=answer.arguments, content=_placed(found.content, content))
    else:
        fault = Fault(NO_RECORDS, "What matches cannot be given in that format.")
    return replace(answer, content=Failure((fault,)))


def _placed(found: Content, asked: RecordList) -> Content:
    """Return the content of a later page as that of the page that was asked for.

    The list begins where it was asked to, and what stands there may change with the crosswalk.
    """
    if not isinstance(found, RecordList):
        return found
    rest, begun = found.resumption, asked.resumption
    if rest is not None and begun is not None:
        rest = replace(rest, cursor=begun.cursor)
    return replace(found, resumption=rest, pinned=False)
