"""Drift: where the publisher makes a format otherwise than this server does.

A publish that finds a format made otherwise gives all of its records a new datestamp. A server that
still runs the old templates must not answer under that datestamp: whoever harvests would have the
old XML and never ask again.
"""

import logging
import threading
from collections.abc import Mapping

from functions.snapshot.errors import StoreError
from functions.snapshot.manifest import Manifest

_LOG = logging.getLogger("sheaf")


class Drift:
    """Knows by prefix the digests of what makes each format here. May be used by many threads."""

    def __init__(self, digests: Mapping[str, str]):
        self._own = digests
        self._first: dict[str, str] = {}
        self._lock = threading.Lock()

    def check(self, manifest: Manifest, prefix: str) -> None:
        """Raise StoreError if the format is made otherwise since this server runs.

        `manifest` is that of the snapshot in effect; a list may still go on in an older one.

        One that was so from the beginning is logged: this server may be ahead of the publisher.
        """
        making, own = manifest.formats.get(prefix), self._own.get(prefix)
        if making is None or own is None:
            return
        with self._lock:
            new = prefix not in self._first
            first = self._first.setdefault(prefix, making.digest)
        if making.digest == own:
            return
        if making.digest != first:
            raise StoreError(
                f"the format {prefix} is made otherwise since snapshot {making.snapshot}: start "
                "this server anew, with the templates and settings of the publisher"
            )
        if new:
            _LOG.warning(
                "the format %s is made otherwise here than when snapshot %d was published: "
                "run `sheaf publish`, or bring this server up to date",
                prefix, manifest.snapshot,
            )  # fmt: skip
