"""The page of checks: when bytes of the store were read, and what was found damaged."""

import logging

from functions.site.page import PageRequest, SitePage
from functions.snapshot.errors import StoreError
from functions.snapshot.fixity import find_since

_LOG = logging.getLogger("sheaf")
_MANY = 50
"""Checks on the page."""


def show(request: PageRequest) -> SitePage:
    """Return the page of the newest checks."""
    try:
        reports = request.parts.checks() if request.parts.checks else ()
    except StoreError as error:
        # A role may not allow reading them.
        _LOG.warning("the checks are not shown: %s", error)
        reports = ()
    values = {"rows": reports[: -_MANY - 1 : -1], "since": find_since(reports)}
    return SitePage("checks.html", request.text("checks.title"), values)
