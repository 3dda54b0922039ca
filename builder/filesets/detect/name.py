"""Parser for names of datasets: a URL, a DOI or another handle, in any form."""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from builder.filesets.protocols import FilesetError
from builder.http import url as address

DOI_RESOLVER = "https://doi.org/"
HANDLE_RESOLVER = "https://hdl.handle.net/"

_RESOLVED = re.compile(
    r"(?:https?://)?(?:www\.)?(dx\.doi\.org|doi\.org|hdl\.handle\.net)/(.+)", re.I
)
_PREFIXED = re.compile(r"(doi|hdl|info:doi/|info:hdl/)(?::\s*|(?<=/))(.+)", re.I)
_DOI = re.compile(r"10\.[0-9]{2,9}(?:\.[0-9]+)*/[^\s]+")
_HANDLE = re.compile(r"[0-9]+(?:\.[0-9A-Za-z]+)*/[^\s]+")


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a dataset. `url` can be requested; for a handle it is the resolver's URL.

    `handle` is a DOI or another handle as written, without a resolver's URL.
    """

    url: str
    handle: str | None = None

    @property
    def doi(self) -> str | None:
        """The DOI in lower case, or None."""
        return self.handle.lower() if self.handle and self.handle.startswith("10.") else None


def parse(given: str) -> Name:
    """Parse the name in a request. Raises FilesetError (bad-identifier)."""
    text = given.strip()
    if text and text.isprintable():
        handle = handle_of(text)
        if handle is not None:
            resolver = DOI_RESOLVER if handle.startswith("10.") else HANDLE_RESOLVER
            return Name(resolver + quote(handle, safe="/:;()~+@!$,="), handle)
        found = address.normalise(text)
        if found.id is not None and not found.spaced and found.id.startswith("http"):
            return Name(found.id)
    shown = text if len(text) <= 200 else text[:200] + "..."
    raise FilesetError("bad-identifier", f"not a URL or DOI: {shown!r}")


def handle_of(text: str) -> str | None:
    """Return the DOI or handle in a text, in its original case, or None.

    Without a prefix only DOIs are recognised, because many texts look like handles.
    """
    resolved = _RESOLVED.fullmatch(text)
    if resolved:
        path = unquote(re.split(r"[?#]", resolved[2], maxsplit=1)[0])
        doi = resolved[1].lower() != "hdl.handle.net"
        return path if (_DOI if doi else _HANDLE).fullmatch(path) else None
    prefixed = _PREFIXED.fullmatch(text)
    if prefixed:
        doi = "doi" in prefixed[1].lower()
        return prefixed[2] if (_DOI if doi else _HANDLE).fullmatch(prefixed[2]) else None
    return text if _DOI.fullmatch(text) else None
