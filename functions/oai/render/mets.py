"""METS: the files of a dataset with their digests and addresses.

A record must fit into an answer, so a very long list of files ends early. The table `files` and the
exports have all.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functions.oai.render.copy_address import CopyAddresses
from functions.snapshot.oai_name import is_uri

_ROOM = 2_000_000
"""Bytes of XML for the files of a record, as an estimate: an answer has up to 4,000,000."""
_MARKUP = 400
"""Bytes of XML for a file, without its path and its addresses."""
_ALGORITHMS = {"sha256": "SHA-256", "sha1": "SHA-1", "md5": "MD5"}
"""Digests of a file, the best first, by METS's names."""
_STAMP = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})")
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class MetsFilters:
    """Filters of crosswalks to METS; `copies` has the addresses of archived copies."""

    copies: CopyAddresses

    def describe(
        self, identifier: str, files: Sequence[Mapping[str, Any]] | None
    ) -> Mapping[str, Any]:
        """Return the `files` of a dataset that fit, `count` of all, and a `mark` for XML ids.

        Ids must differ within an answer, so they begin with the mark of the record's identifier.
        """
        mark = hashlib.sha256(identifier.encode()).hexdigest()[:_DIGITS]
        taken = [
            {"id": f"f-{mark}-{number}", **file}
            for number, file in enumerate(self._take(identifier, files or ()), 1)
        ]
        return {"mark": mark, "files": taken, "count": len(files or ())}

    def _take(
        self, identifier: str, files: Sequence[Mapping[str, Any]]
    ) -> Iterator[Mapping[str, Any]]:
        room = _ROOM
        for file in files:
            own = self.copies.find_file(identifier, file["path"]) if file.get("key") else None
            url = file.get("platform_url") or ""
            is_web = url.startswith(("http://", "https://")) and is_uri(url)
            addresses = [address for address in (own, url if is_web else None) if address]
            stamp = _STAMP.fullmatch(file.get("terminal_dt") or "")
            path = file.get("original") or file["path"]
            room -= _MARKUP + len(path.encode()) + sum(map(len, addresses))
            if room < 0:
                return
            name = next((name for name in _ALGORITHMS if file.get(name)), "")
            yield {
                "path": path,
                "bytes": file.get("bytes"),
                "mimetype": file.get("mimetype"),
                "created": "{}-{}-{}T{}:{}:{}Z".format(*stamp.groups()) if stamp else "",
                "digest": file.get(name),
                "algorithm": _ALGORITHMS.get(name),
                "addresses": addresses,
            }
