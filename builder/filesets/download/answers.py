"""Answers of platforms as they are kept: packed, without secrets, and bounded in all."""

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime

from builder.filesets.item import PlatformAnswer
from builder.http import responses
from builder.http.responses import Response
from builder.http.url import strip_secrets
from functions.snapshot.instant import to_digits

_ROOM = 32 << 20
"""Packed bytes of all answers for a request."""


def pack_answer(
    requested: str,
    accept: str,
    answer: Response,
    body: bytes,
    now: float,
    earlier: Sequence[PlatformAnswer],
) -> PlatformAnswer:
    """Return a response as it is kept; its body is left out if `earlier` ones take the room.

    `requested` and `accept` are URL and Accept of the request, and `now` is in seconds since 1970.
    """
    room = _ROOM - sum(len(one.packed or b"") for one in earlier)
    packed = zlib.compress(body, 1)
    return PlatformAnswer(
        requested=strip_secrets(requested),
        url=strip_secrets(answer.url),
        accept=accept,
        at=to_digits(datetime.fromtimestamp(now, UTC)),
        status=answer.status,
        reason=answer.reason,
        headers=answer.raw,
        packed=packed if len(packed) <= room else None,
        unpacked=responses.content_coding(answer.headers) is not None,
    )
