"""Offer of data files: what Identify tells of the snapshot that it answers from.

A repository of Sheaf names the manifest of the snapshot with its SHA-256, and for each format a
digest of how it renders records. If ours is the same, its XML can be made here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from builder.harvest.errors import FilesError
from builder.http.addresses import AnyAddresses, is_public
from builder.http.errors import FetchError
from functions.snapshot import layout

_NAMESPACE = "{urn:x-sheaf:snapshot:1}"
_LONGEST = 1 << 20
AUTO, PAGES, FILES = "auto", "pages", "files"
WAYS = (AUTO, PAGES, FILES)
"""How a list is taken: from data files where they are offered, or always in one way."""


@dataclass(frozen=True, slots=True)
class FileOffer:
    """A snapshot: its number, the address of its store, its manifest's SHA-256, and its settings.

    `rendering` is the repository's digest of a format's rendering. `base_url` is that of Identify,
    `asked` the one that the user gave.
    """

    snapshot: int
    root: str
    manifest: str
    settings: str
    rendering: str
    base_url: str
    asked: str


@dataclass(frozen=True, slots=True)
class SnapshotDescription:
    """The description of a snapshot in Identify, as it was sent; `renderings` by prefix."""

    number: str
    manifest: str
    digest: str
    settings: str
    renderings: Mapping[str, str]

    def offer(self, prefix: str, base_url: str, asked: str, *, signed: bool) -> FileOffer:
        """Return the offer for a format. Raises FilesError if there is none, or it is invalid.

        A bucket is read with the keys of this machine, so only if requests may be `signed`.
        """
        root = self.manifest.removesuffix(f"/{layout.manifest_key(0).replace('0', self.number)}")
        if not (self.number.isascii() and self.number.isdecimal() and root != self.manifest):
            raise FilesError("Identify does not name the manifest of its snapshot")
        if prefix not in self.renderings:
            raise FilesError(f"Identify does not say how {prefix} is rendered")
        if root.startswith(layout.S3_SCHEME) and not signed:
            raise FilesError(f"{root} is read with your own keys, which --by {FILES} allows")
        number, rendering = int(self.number), self.renderings[prefix]
        return FileOffer(number, root, self.digest, self.settings, rendering, base_url, asked)


def find_description(identify: Element) -> SnapshotDescription | None:
    """Return what an Identify response tells of its snapshot; None if it names no manifest."""
    found = identify.find(f".//{_NAMESPACE}snapshot")
    manifest = None if found is None else found.find(f"{_NAMESPACE}manifest")
    if found is None or manifest is None:
        return None
    settings = found.findtext(f"{_NAMESPACE}settings", "{}")
    return SnapshotDescription(
        found.get("number", ""),
        (manifest.text or "").strip(),
        manifest.get("sha256", "").lower(),
        settings[:_LONGEST],
        {
            one.get("prefix", ""): one.get("digest", "")
            for one in found.iterfind(f"{_NAMESPACE}rendering")
        },
    )


def read_offer(document: Mapping[str, Any]) -> FileOffer:
    """Return an offer from the state of a harvest. Raises FilesError."""
    try:
        return FileOffer(**document)
    except TypeError as error:
        raise FilesError("its state has no offer of data files") from error


def check_root(root: str, asked: str) -> bool:
    """Check the address of data files, which a repository chose; return whether http is allowed.

    A public repository must not lead into our own network. `asked` is the URL that the user gave:
    what Identify calls itself proves nothing. Raises FilesError.
    """
    if root.startswith(layout.S3_SCHEME):
        return False
    if not root.startswith(layout.WEB_SCHEMES):
        raise FilesError(f"the address of data files cannot be used: {root[:100]!r}")
    own, other = urlsplit(asked), urlsplit(root)
    try:
        hosts = (own.hostname or "", other.hostname or "")
        mine, theirs = (AnyAddresses().addresses(host, 443) for host in hosts)
    except (FetchError, ValueError) as error:
        raise FilesError(str(error)) from error
    private = any(not is_public(str(address[0])) for _, address in theirs)
    if private and all(is_public(str(address[0])) for _, address in mine):
        raise FilesError(f"{other.hostname} is not a public address")
    return own.scheme == "http"
