"""Statuses: of which answers of a server the last one is taken for what a URL was."""

import re
from collections.abc import Callable

from builder.restore.errors import RebuildError
from builder.restore.protocols import ListedCapture

USUAL = "200-205,207-303,305-399"
"""Whole answers and redirects: neither a part (206) nor `as before` (304), and no errors."""
_RANGE = re.compile(r"([1-9][0-9]{2})(?:-([1-9][0-9]{2}))?")


def accepting(text: str, *, requests: bool = False) -> Callable[[ListedCapture], bool]:
    """Return what tells of a capture whether its status is one of these, or it has none.

    The answer to another method than GET is no page of its URL: with `requests` alone it counts.

    `text` is a list of statuses and ranges, with commas between them. A revisit that says 304 is
    the capture that it refers to, whatever is asked for. Raises RebuildError for what is no list.
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
