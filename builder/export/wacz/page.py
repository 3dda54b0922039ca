"""Page list of a WACZ file: the captures of HTML with a title (pages/pages.jsonl).

The pages are in the order of the index, so that the captures of a page are consecutive.
"""

import json

from builder.export.wacz.selection import Chosen
from functions.content.capture import CaptureRow

HEADING = b'{"format": "json-pages-1.0", "id": "pages", "title": "Pages"}\n'
_HTML = frozenset({"text/html", "application/xhtml+xml"})


def is_page(one: Chosen) -> bool:
    """Return whether a capture is a page: chosen itself, successful (2xx), and with a title.

    The response to any method except GET is not a page.
    """
    capture = one.capture
    there = capture.status is not None and 200 <= capture.status < 300
    kinds = {capture.detected, capture.mime}
    return bool(
        there and capture.method is None and one.title and not one.besides and kinds & _HTML
    )


def line(one: Chosen) -> bytes:
    """Return the line of a page: its URL, date (RFC 3339), title, and the item's identifier."""
    capture = one.capture
    told = {
        "id": capture.identifier,
        "url": capture.url,
        "ts": moment(capture),
        "title": one.title,
    }
    return json.dumps(told).encode("ascii") + b"\n"


def moment(capture: CaptureRow) -> str:
    """Return a capture's date to the second; unknown parts have the lowest value."""
    day, time = capture.stamp[:8], capture.stamp[8:]
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"
