"""Persistent ids: which dataset of Dataverse a URL is about, and at which installation."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlsplit

from builder.filesets.detect.name import handle_of
from builder.filesets.item import DatasetResource
from builder.filesets.metadata import origin

_SETS = (
    r"dataset\.xhtml|citation|datasets?|api/(?:access/dataset|datasets)/:persistentId"
    r"(?:/versions/(?P<version>[^/]+))?"
)
_FILES = r"file\.xhtml|files?|api/(?:files|access/datafile)/(?::persistentId|(?P<number>[0-9]+))"
_PAGE = re.compile(rf"(?P<base>.*?)(?:/spa)?/(?:{_SETS}|(?P<file>{_FILES}))(?:/metadata)?/?")
_PERSISTENT = re.compile(r"(?:doi:10\.[0-9.]+/|hdl:[0-9A-Za-z.]+/|perma:|ark:)\S+", re.IGNORECASE)
_LATEST = frozenset({":latest", ":latest-published"})
_DRAFTS = frozenset({"draft", ":draft"})


@dataclass(frozen=True, slots=True)
class Persistent:
    """What a URL asks for. `base` is what the installation's URLs begin with.

    `id` is a persistent id such as doi:10.5072/FK2/ABC, and `number` one in its database, for
    want of the first. `version` is as asked for, None for the newest; `file` says that it is a
    file of a dataset, `named` that the URL itself has an id and looks as Dataverse's do.
    """

    base: str
    id: str | None
    number: str | None
    version: str | None
    file: bool
    named: bool

    @property
    def is_draft(self) -> bool:
        """Tell whether a version is asked for that is not published."""
        return (self.version or "").lower() in _DRAFTS

    @property
    def api(self) -> str:
        """What URLs of the API begin with."""
        return f"{self.base}/api"

    def url(self, kind: str, rest: str = "", **query: str) -> str:
        """Return a URL of the API, of a dataset or a file, whichever it is asked for by."""
        given = {"persistentId": self.id} | query if self.id is not None else query
        called = ":persistentId" if self.id is not None else self.number
        asked = "&".join(f"{name}={quote(value, safe=':/')}" for name, value in given.items())
        return f"{self.api}/{kind}/{called}/{rest}" + (f"?{asked}" if asked else "")


def persistent(resource: DatasetResource) -> Persistent | None:
    """Return what a resource's URL asks for, or its DOI at the URL's host; None if neither does."""
    parts = urlsplit(resource.url)
    query = dict(parse_qsl(parts.query))
    shape = _PAGE.fullmatch(parts.path)
    given = _id(query.get("persistentId", ""))
    number = query.get("fileId") or query.get("id") or (shape and shape["number"])
    counts = bool(shape and number and number.isdigit())
    if given is None and not counts and resource.doi is None:
        return None
    asked = query.get("version") or (shape["version"] if shape else None)
    return Persistent(
        base=origin.base(resource.url) + (shape["base"] if shape else ""),
        id=given or (None if counts or resource.doi is None else f"doi:{resource.doi.upper()}"),
        number=number if counts else None,
        version=None if (asked or "").lower() in _LATEST else asked,
        file=bool(shape and shape["file"]),
        named=shape is not None and given is not None,
    )


def _id(given: str) -> str | None:
    handle = handle_of(given)
    if handle is not None and not given.startswith(("doi:", "hdl:")):
        return f"{'doi' if handle.startswith('10.') else 'hdl'}:{handle}"
    return given if _PERSISTENT.fullmatch(given) else None
