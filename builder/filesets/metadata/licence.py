"""SPDX ids of licences, from the names or URLs that platforms give."""

import re

from builder.filesets.item import Licence
from builder.filesets.metadata.json_document import text, web

_COMMONS = re.compile(
    r"https?://creativecommons\.org/licen[cs]es/(by(?:-nc)?(?:-nd|-sa)?)/([1-4]\.\d)(?:/.*)?", re.I
)
_NAMED = re.compile(r"cc[ -](by(?:-nc)?(?:-nd|-sa)?)[ -]v?([1-4]\.\d)", re.I)
_SPDX = re.compile(r"https?://spdx\.org/licenses/([A-Za-z0-9.+-]+?)(?:\.html|\.json)?", re.I)
_ZERO = re.compile(
    r"https?://creativecommons\.org/publicdomain/zero/1\.0(?:/.*)?"
    r"|cc[ -]?(?:0|zero)(?:[ -]1\.0)?(?: universal)?",
    re.I,
)
_OTHERS = {
    "mit": "MIT",
    "mit license": "MIT",
    "apache 2.0": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "gpl 2.0+": "GPL-2.0-or-later",
    "gpl 3.0+": "GPL-3.0-or-later",
    "odc-by": "ODC-By-1.0",
    "odc-odbl": "ODbL-1.0",
    "odc-pddl": "PDDL-1.0",
}
"""Platforms' names of licences, in lower case. Names without a version are left out."""


def spdx(value: str | None) -> str | None:
    """Return the SPDX id of a licence's name or URL; None if it is uncertain."""
    if value is None:
        return None
    commons = _COMMONS.fullmatch(value) or _NAMED.fullmatch(value)
    if commons:
        return f"CC-{commons[1].upper()}-{commons[2]}"
    if _ZERO.fullmatch(value):
        return "CC0-1.0"
    listed = _SPDX.fullmatch(value)
    return listed[1] if listed else _OTHERS.get(value.lower())


def licences(*, name: object = None, url: object = None) -> tuple[Licence, ...]:
    """Return the licence with that name and URL; empty if both are missing."""
    called, address = text(name), web(url)
    if called is None and address is None:
        return ()
    return (Licence(called, spdx(address) or spdx(called), address),)
