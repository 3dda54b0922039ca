"""Faults of a tree or tarball of ReDIF, apart from those of the templates themselves."""

from typing import NamedTuple

CODES: dict[str, str] = {
    "link": "a link in a tarball, which is not followed",
    "link-outside": "a link in a folder that leads out of it or is broken, which is not followed",
    "not-a-file": "a device, pipe or socket, or a sparse file of a tarball",
    "path-unsafe": "the name of a member of a tarball is absolute or has .. in it",
    "file-too-large": "a file is larger than redif.largest allows",
    "unreadable": "a file or folder cannot be opened, or cannot be read to its end",
    "tarball-damaged": "a tarball cannot be read to its end",
    "flaws-cut": "more files were skipped than can be listed, so nothing counts as missing",
    "repeated-member": "a tarball, or several sources together, have another file with this name",
    "duplicate-handle": "another template takes precedence: in the handle's own folder, or earlier",
    "bad-file-url": "a File-URL that is not a URL",
    "userinfo": "a File-URL with a user's name or a password in it",
    "unsupported-scheme": "a File-URL of another scheme than http, https and ftp",
    "no-handle": "a template without a handle; only its file is stored",
    "loss-held": "so many templates disappeared that they are not deleted (see --accept-loss)",
    "archive-incomplete": "an archive has no readable aaaarch.rdf, or could not be read completely",
}
"""Each code with its meaning; builder.sources.redif.diagnostic has the other codes."""

KEPT, LEFT_OUT = "kept", "left out"
"""What is done with the faulty file or template."""


class Flaw(NamedTuple):
    """A fault for which a file of a source is left out."""

    path: str
    code: str
    detail: str
    hides: bool
    """True if templates may be missing because of it."""
