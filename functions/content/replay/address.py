"""Addresses of replay: `/web/TIMESTAMP/URL`, as replay systems and their clients write them.

A timestamp has 1 to 14 digits. Behind it a modifier may say what the URL is wanted for: nothing is
a page with its banner, `id_` the bytes as archived, `if_` the page alone, `fr_` a frame within a
page, and others are what pages load. Without a timestamp the newest capture is meant, and with an
asterisk all of them.
"""

from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from functions.content import header_fields
from functions.content.replay import references
from functions.content.replay.request import PATH, ReplayRequest, parse_address
from functions.content.representation import ArgumentError
from functions.content.terms import NoScope
from functions.http.http_message import Call

PAGE, STORED, TOP, FRAME = "", "id_", "if_", "fr_"
"""Modifiers: a page with its banner, the bytes as archived, the page itself, a frame in a page."""
_MODIFIERS = {
    references.IMAGE: "im_",
    references.STYLE: "cs_",
    references.SCRIPT: "js_",
    references.MEDIA: "oe_",
    references.FRAME: FRAME,
    references.REFRESH: FRAME,
}
"""Modifiers by what a reference is for."""


def read_replay(call: Call) -> ReplayRequest:
    """Return the request in a call below PATH. Raises ArgumentError."""
    path = call.path.removeprefix(PATH).removeprefix("/")
    try:
        return parse_address(f"{path}?{call.query}" if path and call.query else path)
    except NoScope as error:
        raise ArgumentError(f"{error}.") from error


@dataclass(frozen=True, slots=True)
class ReplayAddresses:
    """Where replay is: `base` of the pages, and `frames` of what is archived (may be the same).

    `pages` is the path of pages: PATH, or SCRIPTS where archived scripts run.
    """

    base: str
    frames: str
    pages: str = PATH

    @property
    def origin(self) -> str:
        """Scheme and host of the pages: a policy compares no path of what has a page in a frame."""
        parts = urlsplit(self.base)
        return f"{parts.scheme}://{parts.netloc}"

    def page(self, stamp: str, url: str) -> str:
        """Return the address of a page with its banner."""
        return f"{self._root}{self.pages}/{stamp}/{header_fields.uri_in_path(url)}"

    def resource(self, stamp: str, modifier: str, url: str) -> str:
        """Return the address of what is archived, from the root of its host."""
        return (
            f"{urlsplit(self.frames).path}{PATH}/{stamp}{modifier}/{header_fields.uri_in_path(url)}"
        )

    def reference(self, stamp: str, role: str, url: str) -> str:
        """Return the address that a reference for a purpose leads to."""
        modifier = _MODIFIERS.get(role)
        return self.page(stamp, url) if modifier is None else self.resource(stamp, modifier, url)

    def frame(self, stamp: str, url: str) -> str:
        """Return the whole address of the page itself, without its banner."""
        return f"{self.frames}{PATH}/{stamp}{TOP}/{header_fields.uri_in_path(url)}"

    def listing(self, request: ReplayRequest) -> str:
        """Return the address of the list of captures."""
        span = f"&from={request.stamp}&to={request.stamp}" if len(request.stamp) >= 4 else ""
        return f"{self._root}/captures?url={quote(request.url, safe='')}{span}"

    def record(self, identifier: str) -> str:
        """Return the address of the page of a record."""
        return f"{self.base}/record?id={quote(identifier)}"

    @property
    def _root(self) -> str:
        """Where Sheaf's own pages are, as archived ones link to them."""
        return urlsplit(self.base).path if self.base == self.frames else self.base
