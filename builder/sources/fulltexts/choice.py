"""Choice of files: which ones to fetch, when to fetch them again, and what no longer forbids it.

The rules of the operator say which hosts, publishers and restricted files are excluded or slowed
down. They are the rows of `gather.rules`. The first row that fits a file counts. A row without
publisher and restriction also counts for a host to which a redirect leads.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Any

from builder.http.addresses import PublicAddresses, is_public
from builder.http.limits import Limits
from functions.store import engine

DAY = 86_400
_EXCLUDED = -1
_PORT = re.compile(r":([0-9]+)\Z")
_BYTES = re.compile(r"([0-9,]+) bytes\Z")
_BETWEEN = re.compile(r"[\s,]+")
_HOST = re.compile(r"[a-z]+://(\[[^\]]*\]|[^/:?#]*)")
_WILD = frozenset("*?[")
_OF_HANDLE = (
    "len(list_filter(handles, lambda h: h = $handle OR starts_with(h, $handle || ':'))) > 0"
)


@dataclass(frozen=True, slots=True)
class GatherRule:
    """A row: all its conditions must hold. `seconds` are left between requests to the host.

    `host` is a pattern, `publisher` the handle of an archive or a series.
    """

    host: str | None = None
    publisher: str | None = None
    restricted: bool | None = None
    exclude: bool = False
    seconds: float = 0

    def condition(self) -> str:
        """Return the conditions as SQL on the table of files."""
        conditions = ["true"]
        if self.host is not None:
            conditions.append(f"host GLOB {engine.quote(self.host)}")
        if self.publisher is not None:
            handle = engine.quote(self.publisher)
            below = engine.quote(self.publisher + ":")
            fits = f"list_filter(handles, lambda h: h = {handle} OR starts_with(h, {below}))"
            conditions.append(f"len({fits}) > 0")
        if self.restricted is not None:
            conditions.append("restricted" if self.restricted else "NOT restricted")
        return " AND ".join(conditions)

    def fits_host(self, host: str) -> bool:
        """Return whether the row concerns all files of the host."""
        alone = self.publisher is None and self.restricted is None
        return alone and self.host is not None and fnmatchcase(host, self.host)


@dataclass(frozen=True, slots=True)
class GatherRules:
    """All rows, in order."""

    rows: Sequence[GatherRule] = ()

    @staticmethod
    def parse(value: Sequence[Mapping[str, Any]]) -> "GatherRules":
        """Return the rules of a valid value of `gather.rules`."""
        rows = [dict(row) for row in value]
        for row in rows:
            if "host" in row:
                row["host"] = row["host"].lower()
            if "publisher" in row:
                row["publisher"] = "RePEc:" + row["publisher"][len("RePEc:") :].strip(":").lower()
        return GatherRules(tuple(GatherRule(**row) for row in rows))

    def pause(self) -> str:
        """Return the seconds between requests as SQL on the table of files; -1: excluded."""
        if not self.rows:
            return "0"
        cases = (
            f"WHEN {row.condition()} THEN {_EXCLUDED if row.exclude else row.seconds}"
            for row in self.rows
        )
        return f"(CASE {' '.join(cases)} ELSE 0 END)::DOUBLE"

    def excludes(self, host: str) -> bool:
        """Return whether a host is excluded, whatever leads to it."""
        return next((row.exclude for row in self.rows if row.fits_host(host)), False)

    def seconds(self, host: str) -> float:
        """Return the seconds between requests to a host, whatever leads to it; 0 without a rule."""
        return next((row.seconds for row in self.rows if row.fits_host(host)), 0)


NO_RULES = GatherRules()


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """The limits of the configuration, which may no longer cause some earlier failures."""

    guard: PublicAddresses
    limits: Limits
    obey: bool
    rules: GatherRules = NO_RULES

    def lift(self, code: str, detail: str) -> bool:
        """Return whether a failure with this detail would not happen now, as far as is known.

        Nothing is looked up: addresses, port and size are those of the last attempt.
        """
        if code == "address-refused":
            return any(map(self._allows, _BETWEEN.split(detail)))
        if code == "port-refused":
            port = _PORT.search(detail)
            return port is not None and int(port[1]) in self.guard.ports
        if code == "robots-disallowed":
            return not self.obey
        if code == "excluded":
            return not self.rules.excludes(detail)
        size = _BYTES.search(detail) if code == "too-large" else None
        if size is None or not (digits := size[1].replace(",", "")):
            return False
        # If its size was unknown, the file exceeded the limit of that time.
        least = int(digits) + ("more than" in detail)
        return least <= self.limits.bytes

    def _allows(self, word: str) -> bool:
        try:
            ip_address(word.partition("%")[0])
        except ValueError:  # the host's name, or other words
            return False
        return is_public(word, self.guard.allowed)


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Which files to fetch, and when to fetch them again.

    `handle` selects an archive or a series, `pattern` the URLs that match it. `interval` and
    `retry` are in seconds; `retry` doubles with each failure. `lifted` returns, for a code and a
    detail, whether the configuration no longer causes that failure. `rules` exclude files.
    """

    interval: int
    retry: int
    again: bool = False
    handle: str | None = None
    pattern: str | None = None
    lifted: Callable[[str, str], bool] = lambda code, detail: False
    rules: GatherRules = NO_RULES

    def condition(self) -> str:
        """Return the choice as an SQL condition on the table of files; see `values`."""
        conditions = ["true"]
        if self.handle is not None:
            conditions.append(_OF_HANDLE)
        if self.pattern is not None and not _WILD & set(self.pattern):
            conditions.append("host = $host AND id = $pattern")
        elif self.pattern is not None:
            conditions.append("id GLOB $pattern")
        return " AND ".join(conditions)

    def values(self) -> dict[str, object]:
        """Return the parameters of `condition`."""
        values: dict[str, object] = {}
        if self.handle is not None:
            values["handle"] = self.handle
        if self.pattern is not None:
            values["pattern"] = self.pattern
            if not _WILD & set(self.pattern):
                values["host"] = host_of(self.pattern)
        return values


def host_of(url: str) -> str:
    """Return the host of a normalised URL, as the table of files has it."""
    match = _HOST.match(url)
    return match[1].strip("[]") if match else ""
