"""Checks of a site: each file that belongs to it exists and is whole."""

import gzip
import json
import zlib
from collections.abc import Iterator

from builder.outputs.site.site_files import GZIP, SiteFiles
from builder.outputs.site.site_state import LEASE, PROGRESS, ROUTER, SiteState
from builder.snapshot.audit import StoreAudit
from builder.store.findings import Finding
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.layout import SITE


def site_findings(audit: StoreAudit) -> Iterator[Finding]:
    """Yield what is missing in the site of a store, or differs from the gzip beside it.

    Raises StoreError if the store cannot be read.
    """
    names = {key.removeprefix(SITE) for key in audit.store.keys(SITE)}
    files = SiteFiles(audit.store, SITE)
    if not names:
        return
    try:
        state = SiteState.read(files)
        if state is None:
            yield Finding("site-behind", SITE + ROUTER, "its first update was interrupted")
            return
        expected = {*state.expect(files, names)}
        strays = state.list_strays(files, names)
    except DamagedStore as error:
        yield Finding("site-altered", SITE, str(error))
        return
    newest = audit.pointer.newest()
    if PROGRESS in names or (newest is not None and state.snapshot < newest.snapshot):
        problem = (
            f"it has snapshot {state.snapshot}, and the newest is {newest and newest.snapshot}"
        )
        yield Finding("site-behind", SITE + ROUTER, problem)
    for name in sorted(expected - names):
        yield Finding("site-missing", SITE + name, "it belongs to the site, but does not exist")
    for name in sorted(expected & names):
        if audit.is_read(SITE + name) and not _is_whole(files, name, expected):
            yield Finding("site-altered", SITE + name, "its content is damaged")
    for name in strays:
        if name not in state.gone and name != LEASE:
            yield Finding("orphan", SITE + name, "site/state.json does not name it")


def _is_whole(files: SiteFiles, name: str, expected: set[str]) -> bool:
    """Return whether a document is what its gzip has, or JSON can be parsed."""
    try:
        data = files.read(name)
        if name.endswith(GZIP):
            return gzip.decompress(data) == files.read(name.removesuffix(GZIP))
        if name.endswith(".json"):
            json.loads(data)
    except MissingObject:
        return True  # reported otherwise
    except (OSError, EOFError, ValueError, zlib.error):
        return False
    return True
