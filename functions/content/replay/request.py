"""Requests of replay: what an address `/web/TIMESTAMP/URL` asks for."""

import re
from dataclasses import dataclass

from functions.content import terms
from functions.content.protocols import NEWEST, REPLAY
from functions.content.terms import NoScope
from functions.snapshot import surt

PATH = REPLAY
_PATH = re.compile(r"(?:([0-9]{1,14})([a-z]{2}_)?/|([0-9]{0,14})\*/)?(.+)", re.DOTALL)
_EARLIEST = "10000101000000"


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A request: timestamp and modifier as written, and the URL. `is_list`: all captures."""

    stamp: str
    modifier: str
    url: str
    is_list: bool = False

    @property
    def key(self) -> str:
        """The SURT of the URL."""
        return surt.of(self.url.encode("utf-8", "surrogateescape"))

    @property
    def moment(self) -> int:
        """The timestamp in 14 digits, with what is missing at its minimum; the highest without."""
        return int(self.stamp + _EARLIEST[len(self.stamp) :]) if self.stamp else NEWEST


def parse_address(text: str) -> ReplayRequest:
    """Return the request in what follows PATH in an address. Raises NoScope."""
    match = _PATH.fullmatch(text)
    if match is None:
        raise NoScope(f"Ask for {PATH}/TIMESTAMP/URL")
    stamp, modifier, span, url = match.groups()
    url = terms.complete_url(terms.unescape_path(url))
    return ReplayRequest(stamp or span or "", modifier or "", url, span is not None)
