"""Faults of a tree or tarball of ReDIF, apart from those of the templates themselves."""

from typing import NamedTuple

CODES: dict[str, str] = {
    "link": "a link in a tarball, which is not followed",
    "link-outside": "a link in a folder that leads out of it, or nowhere, which is not followed",
    "not-a-file": "a device, pipe or socket, or a sparse file of a tarball",
    "path-unsafe": "the name of a member of a tarball is absolute or has .. in it",
    "file-too-large": "a file is larger than redif.largest allows",
    "unreadable": "a file or folder cannot be opened, or not be read to its end",
    "tarball-damaged": "a tarball cannot be read to its end",
    "flaws-cut": "more files are left out than are listed, so that nothing counts as missing",
    "repeated-member": "a tarball, or several sources together, hold a file of this name again",
    "duplicate-handle": "another template of the handle counts, in its own folder or before this",
    "bad-file-url": "a File-URL that is no URL at all",
    "userinfo": "a File-URL with a user's name or a password in it",
    "unsupported-scheme": "a File-URL of another scheme than http, https and ftp",
    "no-handle": "a template without a handle, of which the file alone is kept",
    "loss-held": "so many templates vanished that their loss is not believed (--accept-loss)",
    "archive-incomplete": "an archive has no readable aaaarch.rdf, or could not be read whole",
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
