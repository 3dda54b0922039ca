"""Names of the files of a site (builder.outputs.site), which routers make in the same way."""

import hashlib

LETTERS = {"ListRecords": "r", "ListIdentifiers": "i"}
"""The verbs of lists, and the end of their folders."""
_LONGEST = 200
"""Characters of a set that is named by itself, because file names have limits."""


def digest_name(name: str) -> str:
    """Return the SHA-1 of an identifier or a set in hexadecimal."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def chain_key(folder: str, spec: str | None) -> str:
    """Return the name of a chain in the folder of a list; `spec` is None for all records."""
    return f"{_stem(folder, spec)}.json"


def page_key(folder: str, spec: str | None, first: int) -> str:
    """Return the name of a page."""
    return f"{_stem(folder, spec)}/{first}.xml"


def _stem(folder: str, spec: str | None) -> str:
    if spec is None:
        return f"{folder}/all"
    if len(spec) > _LONGEST or spec in (".", ".."):
        spec = f"sha1-{digest_name(spec)}"
    return f"{folder}/set/{spec}"
