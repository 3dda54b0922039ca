"""Parser for URLs of Dataverse: the dataset and its installation."""

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
    """The target of a URL. `base` is the start of the installation's URLs.

    `id` is a persistent id such as doi:10.5072/FK2/ABC. `number` is an id in the database, used if
    there is no persistent id. `version` is the requested one, None for the newest. `file`: the
    target is a file of a dataset. `named`: the URL itself has an id, in Dataverse's form.
    """

    base: str
    id: str | None
    number: str | None
    version: str | None
    file: bool
    named: bool

    @property
    def is_draft(self) -> bool:
        """Return whether an unpublished version is requested."""
        return (self.version or "").lower() in _DRAFTS

    @property
    def api(self) -> str:
        """The start of URLs of the API."""
        return f"{self.base}/api"

    def url(self, kind: str, rest: str = "", **query: str) -> str:
        """Return the URL in the API of a dataset or file, by persistent id or number."""
        given = {"persistentId": self.id} | query if self.id is not None else query
        called = ":persistentId" if self.id is not None else self.number
        asked = "&".join(f"{name}={quote(value, safe=':/')}" for name, value in given.items())
        return f"{self.api}/{kind}/{called}/{rest}" + (f"?{asked}" if asked else "")


def persistent(resource: DatasetResource) -> Persistent | None:
    """Return the target of a resource's URL, or of its DOI at the URL's host, or None."""
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
