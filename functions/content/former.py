"""Former SURTs of IP addresses: stores that were written before have them in another form.

They have `192.0.2.1)/` and `[2001:db8::1])/` where a SURT now is `1,2,0,192)/` and
`2001:db8::1)/`. The host is the same in all of such a range, so both forms have one order.
"""

import re
from dataclasses import dataclass

Row = tuple[str, int, int]
"""A place in the table of URLs: SURT, date, position."""

_IPV4 = re.compile(r"\d{1,3}(?:,\d{1,3}){3}(?=[:)])")
_IPV6 = re.compile(r"[0-9a-f,.]*(?::[0-9a-f,.]*){2,7}(?=\))")
_LOWEST: Row = ("", -1, -1)
_HIGHEST: Row = ("\x7f", 2**63 - 1, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Former:
    """The host of a range, as its SURT has it `now` and as it was `before`."""

    now: str
    before: str

    @staticmethod
    def of(first: str, last: str) -> "Former | None":
        """Return the former host of a range of SURTs; None unless it is one IP address's."""
        if match := _IPV4.match(first):
            before = ".".join(reversed(match[0].split(",")))
        elif match := _IPV6.match(first):
            before = f"[{'.'.join(reversed(match[0].split(',')))}]"
        else:
            return None
        return Former(match[0], before) if last.startswith(match[0]) else None

    def back(self, row: Row) -> Row:
        """Return a place of the range as it was before; other places as an end of all."""
        return _exchanged(row, self.now, self.before)

    def renewed(self, row: Row) -> Row:
        """Return a place of the former range as it is now; other places as an end of all."""
        return _exchanged(row, self.before, self.now)


def _exchanged(row: Row, host: str, other: str) -> Row:
    surt, stamp, position = row
    if surt.startswith(host):
        return other + surt[len(host) :], stamp, position
    return _LOWEST if surt < host else _HIGHEST
