"""Answers of platforms as they are kept: packed, without secrets, and bounded in all."""

import hashlib
import zlib
from collections.abc import Sequence

from builder.filesets.download.exchanges import describe_redirects, digits, mark_exchanges
from builder.filesets.item import HttpExchange, PlatformAnswer
from builder.http import responses
from builder.http.responses import Response
from builder.http.secrets import clean_fields, strip_secrets

_ROOM = 32 << 20
"""Packed bytes of all answers for a request."""


def pack_answer(
    answer: Response, body: bytes, now: float, earlier: Sequence[PlatformAnswer]
) -> PlatformAnswer:
    """Return a response as it is kept; its body is left out if `earlier` ones take the room.

    `now` is in seconds since 1970.
    """
    room = _ROOM - sum(len(one.packed or b"") for one in earlier)
    packed = zlib.compress(body, 1)
    last = HttpExchange(
        url=strip_secrets(answer.url, marked=True),
        at=digits(now),
        status=answer.status,
        reason=answer.reason,
        sent=clean_fields(answer.sent),
        headers=clean_fields(answer.raw),
        address=answer.address,
    )
    *redirects, last = mark_exchanges(
        [*describe_redirects(answer), last], hashlib.sha256(body).hexdigest()
    )
    return PlatformAnswer(
        last=last,
        redirects=tuple(redirects),
        packed=packed if len(packed) <= room else None,
        unpacked=responses.content_coding(answer.headers) is not None,
    )
