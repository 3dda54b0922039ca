"""Access log: one JSON object a line for each request.

A line holds no client address and no resumption token. Client input cannot break a line: JSON
escapes control characters, and here also all characters that are not ASCII.
"""

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from functions.http.http_message import Call, FormError, HttpResponse
from functions.store.s3_request import Tally

_LOG = logging.getLogger("sheaf")

_ARGUMENTS = ("verb", "metadataPrefix", "set", "from", "until", "identifier")
_LONGEST = 300
"""Maximum length of a value in characters; longer values are cut."""


class AccessLog:
    """Writes entries by `write`, which takes a line without its end and may raise."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._broken = False

    def add(
        self,
        when: datetime,
        call: Call,
        response: HttpResponse,
        seconds: float,
        cost: Tally | None = None,
        size: int | None = None,
    ) -> None:
        """Write the entry of a call that arrived at `when` and was answered within `seconds`.

        `cost` counts the requests to a bucket (None: no requests), and `size` the bytes that were
        sent (None: all). If it cannot be written, the entry is lost and one error is logged.
        """
        entry = {
            "time": when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "method": call.method[:_LONGEST],
            "path": call.path[:_LONGEST],
            "status": response.status,
            **_arguments(call),
            **response.log_fields,
            "bytes": response.size if size is None else size,
            "milliseconds": round(seconds * 1000, 1),
            "cached": response.status == 304,
            "store_requests": cost.requests if cost else 0,
            "store_bytes": cost.bytes if cost else 0,
        }
        try:
            self._write(json.dumps(entry, separators=(",", ":")))
            self._broken = False
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is there to be sent
            if not self._broken:
                _LOG.error("the access log cannot be written: %s", error)
            self._broken = True


def _arguments(call: Call) -> dict[str, str]:
    """Return the arguments of the call, unchecked."""
    try:
        pairs = call.pairs
    except FormError:
        return {}
    arguments = dict(reversed(pairs))  # of a repeated argument, the first value
    return {name: arguments[name][:_LONGEST] for name in _ARGUMENTS if name in arguments}
