"""The page of checks: when bytes of the store were read, and what was found damaged."""

import logging
from collections.abc import Sequence

from functions.site.page import PageRequest, PageTable, SitePage
from functions.snapshot import instant
from functions.snapshot.errors import StoreError
from functions.snapshot.fixity import CheckReport, find_since

_LOG = logging.getLogger("sheaf")
_MANY = 50
"""Checks on the page."""
_COLUMNS = ("began", "ended", "snapshot", "part", "percent", "objects", "read", "damage")


def show(request: PageRequest) -> SitePage:
    """Return the page of the newest checks."""
    reports = _read(request)
    values = {
        "rows": reports[: -_MANY - 1 : -1],
        "since": find_since(reports),
        "table": _describe(reports),
    }
    return SitePage("checks.html", request.text("checks.title"), values)


def find_table(request: PageRequest) -> PageTable:
    """Return all checks whose reports are kept, the newest first."""
    return _describe(_read(request))


def _read(request: PageRequest) -> Sequence[CheckReport]:
    try:
        return request.parts.checks() if request.parts.checks else ()
    except StoreError as error:
        # A role may not allow reading them.
        _LOG.warning("the checks are not shown: %s", error)
        return ()


def _describe(reports: Sequence[CheckReport]) -> PageTable:
    rows = [
        (instant.to_text(r.began), instant.to_text(r.ended), *(getattr(r, n) for n in _COLUMNS[2:]))
        for r in reversed(reports)
    ]
    return PageTable("checks", "", _COLUMNS, rows)
