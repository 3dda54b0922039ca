"""Filter of captures by HTTP status: the latest accepted capture of a URL is restored."""

import re
from collections.abc import Callable

from builder.restore.errors import RebuildError
from builder.restore.protocols import ListedCapture

USUAL = "200-205,207-303,305-399"
"""Complete responses and redirects: neither 206 (partial), 304 (not modified) nor errors."""
_RANGE = re.compile(r"([1-9][0-9]{2})(?:-([1-9][0-9]{2}))?")


def accepting(text: str, *, requests: bool = False) -> Callable[[ListedCapture], bool]:
    """Return a predicate: whether a capture's status is listed, or unknown.

    The response to another method than GET is not a page of its URL; it counts only with
    `requests`.

    `text` is a list of statuses and ranges, separated by commas. A revisit with status 304 is
    accepted always: it stands for the capture that it refers to. Raises RebuildError if the list is
    invalid.
    """
    wanted: set[int] = set()
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if not found:
            raise RebuildError(f"--status {text}: expected statuses such as 200,301-308")
        wanted.update(range(int(found[1]), int(found[2] or found[1]) + 1))

    def accepts(held: ListedCapture) -> bool:
        if held.method is not None and not requests:
            return False
        return held.status is None or held.status in wanted or (held.status == 304 and held.revisit)

    return accepts
