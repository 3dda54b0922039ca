"""JSON documents of platforms: accessors, requests for parts and pages, and known hosts.

The accessors assume nothing about types. A value that is missing, null or of another type gives
None or an empty value. A value without which the response is useless raises FilesetError
(platform-bad-response). The hosts are those of software that runs in many places, by platform name.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

from builder.sources.datasets.item import DatasetResource, FilesetManifestFile
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts, ScopeError

_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?![\d-])")
_RESOLVED = re.compile(
    r"(?:https?://)?(?:www\.)?(dx\.doi\.org|doi\.org|hdl\.handle\.net)/(.+)", re.I
)
_PREFIXED = re.compile(r"(doi|hdl|info:doi/|info:hdl/)(?::\s*|(?<=/))(.+)", re.I)
_DOI = re.compile(r"10\.[0-9]{2,9}(?:\.[0-9]+)*/[^\s]+")
_HANDLE = re.compile(r"[0-9]+(?:\.[0-9A-Za-z]+)*/[^\s]+")
_HEX = re.compile(r"[0-9a-f]+")
_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128, "crc32": 8}
_NO_HOST = re.compile(r"[\s%<>\"'\\^`{|}]")
_SIZE = re.compile(r"[0-9]{1,18}")
T = TypeVar("T")
MOST_PAGES = 2_000
"""Most pages of a list; with 100 entries each, twice the allowed number of files."""
_DATAVERSE = """
abacus.library.ubc.ca archive.data.jhu.edu borealisdata.ca darus.uni-stuttgart.de data.aussda.at
data.cifor.org data.cimmyt.org data.cipotato.org data.crossda.hr data.fz-juelich.de
data.goettingen-research-online.de data.gro.uni-goettingen.de data.inrae.fr data.mel.cgiar.org
data.qdr.syr.edu data.sciencespo.fr data.scielo.org datarepositorium.uminho.pt
datasets.iisg.amsterdam dataspace.ust.hk dataverse.ada.edu.au dataverse.asu.edu
dataverse.cirad.fr dataverse.csuc.cat dataverse.fgv.br dataverse.harvard.edu
dataverse.icrisat.org dataverse.iit.it dataverse.ird.fr dataverse.lib.nycu.edu.tw
dataverse.lib.umanitoba.ca dataverse.lib.unb.ca dataverse.lib.virginia.edu dataverse.nl
dataverse.no dataverse.openforestdata.pl dataverse.orc.gmu.edu dataverse.rsu.lv
dataverse.tdl.org dataverse.theacss.org dataverse.ucla.edu dataverse.uclouvain.be
dataverse.unc.edu dataverse.unimi.it dataverse.vtti.vt.edu datos.pucp.edu.pe datos.uchile.cl
dorel.univ-lorraine.fr dvn.fudan.edu.cn edatos.consorciomadrono.es edmond.mpg.de
edmond.mpdl.mpg.de entrepot.recherche.data.gouv.fr heidata.uni-heidelberg.de
indata.cedia.edu.ec keen.zih.tu-dresden.de lida.dataverse.lt opendata.pku.edu.cn
rdr.kuleuven.be redu.unicamp.br repod.icm.edu.pl researchdata.cuhk.edu.hk
researchdata.ntu.edu.sg sodha.be www.sodha.be
"""
_INVENIORDM = """
data.caltech.edu authors.library.caltech.edu fdat.uni-tuebingen.de prism.northwestern.edu
repository.cern repository.tugraz.at researchdata.tuwien.ac.at researchdata.tuwien.at
rodare.hzdr.de ultraviolet.library.nyu.edu works.hcommons.org www.fdr.uni-hamburg.de
"""
DATAVERSE = frozenset(_DATAVERSE.split())
INVENIORDM = frozenset(_INVENIORDM.split())
ZENODO = frozenset({"zenodo.org", "www.zenodo.org", "sandbox.zenodo.org"})


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """Return an object. Raises FilesetError (platform-bad-response) for anything else."""
    if not isinstance(value, Mapping):
        raise FilesetError("platform-bad-response", f"{what} is not a JSON object")
    return value


def inner(value: object, *names: str) -> Mapping[str, Any]:
    """Return the nested object at a path of names; empty if it is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def entries(value: object) -> tuple[Mapping[str, Any], ...]:
    """Return the objects of a list, or a single object as a list of one."""
    if isinstance(value, Mapping):
        return (value,)
    if not isinstance(value, list):
        return ()
    return tuple(entry for entry in value if isinstance(entry, Mapping))


def objects_of(value: object, what: str) -> tuple[Mapping[str, Any], ...]:
    """Return a list's objects. Raises FilesetError (platform-bad-response) if it is no such list.

    It is for lists of files: one that is only partly readable must not pass for a complete list.
    """
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise FilesetError("platform-bad-response", f"{what} is not a list of JSON objects")
    return tuple(value)


def values_at(document: object, path: str) -> Iterator[Any]:
    """Yield what is at a path of names joined by dots; a list stands for each of its members."""
    name, _, rest = path.partition(".")
    for member in entries(document):
        value = member.get(name)
        if rest:
            yield from values_at(value, rest)
        else:
            yield from value if isinstance(value, list) else [value]


def first_at(document: object, paths: str, read: Callable[[object], T | None]) -> T | None:
    """Return the first value at the paths, apart by blanks, of which `read` makes something."""
    values = (value for path in paths.split() for value in values_at(document, path))
    return next((first for value in values if (first := read(value)) is not None), None)


def text(value: object) -> str | None:
    """Return a stripped text, or a number as text; None if it is empty or of another type."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return None
    # Lone surrogates are legal in JSON, but no encoding can represent them.
    return value.encode("utf-8", "replace").decode().strip() or None


def texts(value: object, apart: str = "") -> tuple[str, ...]:
    """Return the distinct texts of a list, or of one text, split at `apart` if given."""
    members = [
        member for member in map(text, value if isinstance(value, list) else [value]) if member
    ]
    if apart:
        members = [part.strip() for member in members for part in member.split(apart)]
    return tuple(dict.fromkeys(filter(None, members)))


def name(value: object, what: str) -> str:
    """Return a file's name unchanged. Raises FilesetError (platform-bad-response) if it is empty.

    builder.sources.datasets.strategies.paths decides later whether the name is safe.
    """
    if not isinstance(value, str) or not value:
        raise FilesetError("platform-bad-response", f"{what} has no name")
    return value.encode("utf-8", "replace").decode()


def size(value: object) -> int | None:
    """Return a number of bytes from a number or its digits; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer() and 0 <= value < 1e18:
        return int(value)
    if isinstance(value, int):
        return value if 0 <= value < 10**18 else None
    return int(value) if isinstance(value, str) and _SIZE.fullmatch(value) else None


def digest(value: object, name: str) -> str | None:
    """Return a digest in lower case; None unless it fits the algorithm (md5, sha1 and so on)."""
    digits = value.strip().lower() if isinstance(value, str) else ""
    return digits if len(digits) == _DIGITS[name] and _HEX.fullmatch(digits) else None


def digests(algorithm: object, value: object) -> dict[str, Any]:
    """Return a digest by the name of its algorithm, in any spelling; empty if one is unknown."""
    kind = (text(algorithm) or "").lower().replace("-", "")
    digits = digest(value, kind) if kind in _DIGITS else None
    return {kind: digits} if digits else {}


def day(value: object) -> str | None:
    """Return the day (W3CDTF) at which a date or time begins; None if it is invalid."""
    match = _DAY.match(value.strip()) if isinstance(value, str) else None
    try:
        if match:
            date(*(int(part or 1) for part in match.groups()))
    except ValueError:
        return None
    return match and match[0]


def handle_of(text: str) -> str | None:
    """Return the DOI or handle in a text, in its original case, or None.

    Without a prefix only DOIs are recognised, because many texts look like handles.
    """
    if resolved := _RESOLVED.fullmatch(text):
        path = unquote(re.split(r"[?#]", resolved[2], maxsplit=1)[0])
        doi = resolved[1].lower() != "hdl.handle.net"
        return path if (_DOI if doi else _HANDLE).fullmatch(path) else None
    if prefixed := _PREFIXED.fullmatch(text):
        doi = "doi" in prefixed[1].lower()
        return prefixed[2] if (_DOI if doi else _HANDLE).fullmatch(prefixed[2]) else None
    return text if _DOI.fullmatch(text) else None


def doi(value: object) -> str | None:
    """Return a DOI in lower case, without a resolver's URL; None if it is not a DOI."""
    handle = handle_of(value.strip()) if isinstance(value, str) else None
    return handle.lower() if handle and handle.startswith("10.") else None


def web(value: object) -> str | None:
    """Return an http(s) URL with a host, spaces in its path escaped; None for anything else."""
    url = text(value)
    if url is None or not url.isprintable():
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    named = parts.hostname and not _NO_HOST.search(parts.netloc)
    return url.replace(" ", "%20") if named and parts.scheme in ("http", "https") else None


def join_url(root: str, value: object) -> str | None:
    """Return the absolute URL of a link in a document below `root`; None if it is invalid."""
    link = text(value)
    try:
        return web(urljoin(root, link)) if link else None
    except ValueError:
        return None


def host(url: str) -> str:
    """Return a URL's host in lower case; empty if it has none or is invalid."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


class HostedPlatform:
    """A platform that is known by the `hosts` of its pages, or by its `dois`."""

    facts: ClassVar[PlatformFacts]
    hosts: ClassVar[frozenset[str]]
    dois: ClassVar[re.Pattern[str] | None] = None

    def match_request(self, resource: DatasetResource) -> bool:
        """Return whether it is the platform, by host or DOI."""
        if host(resource.url) in self.hosts:
            return True
        return self.dois is not None and self.dois.fullmatch(resource.doi or "") is not None


def path(url: str) -> str:
    """Return a URL's path; empty if the URL is invalid."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def apart(
    files: Sequence[FilesetManifestFile], names: Iterable[str] | None = None
) -> tuple[FilesetManifestFile, ...]:
    """Put files with the same path into folders named by `names`, by default numbers from 1.

    It is for platforms where names are not unique but ids are. There is one name for each file.
    """
    paths = Counter(file.path for file in files)
    return tuple(
        replace(file, path=f"{name}/{file.path}") if paths[file.path] > 1 else file
        for file, name in zip(
            files, range(1, len(files) + 1) if names is None else names, strict=True
        )
    )


def refusal(status: str, detail: str | None, until: str | None = None) -> dict[str, Any]:
    """Return the fields of an item whose files are not given, or are not until a day."""
    return {"platform_status": status, "detail": detail or "", "until": until}


@contextmanager
def wrap_part_errors() -> Iterator[None]:
    """Wrap errors of requests for parts of an existing dataset.

    A missing part does not mean that the dataset was removed (platform-404, platform-gone): it
    raises incomplete-manifest.
    """
    try:
        yield
    except FilesetError as error:
        if error.status not in ("platform-404", "platform-gone"):
            raise
        raise FilesetError("incomplete-manifest", error.detail, code=error.code) from error


def part_document(api: Api, url: str, hosts: Sequence[str] = ()) -> Any:
    """Return the document of a part. Raises FilesetError as the API and `wrap_part_errors` do."""
    with wrap_part_errors():
        return api.document(url, hosts=hosts)


@dataclass(frozen=True, slots=True)
class VersionRequest:
    """A requested dataset, by its id, and its version if one is requested."""

    id: str
    version: str | None

    @classmethod
    def of(
        cls, by_url: re.Match[str] | None, by_doi: re.Match[str] | None
    ) -> "VersionRequest | None":
        """Return what a URL, or else a DOI, requests; both have the groups `id` and `version`.

        The version of the DOI counts if the URL has the same id and no version.
        """
        if (match := by_url or by_doi) is None:
            return None
        name, version = match["id"].lower(), match["version"]
        if by_doi and version is None and by_doi["id"] == name:
            version = by_doi["version"]
        return cls(name, version)

    def check(self, received: str | None) -> None:
        """Raise FilesetError (platform-scope) if another version was received."""
        if self.version and received and received != self.version:
            detail = f"requested version {self.version}, received version {received}"
            raise ScopeError(detail, "wrong-version")


def edition(api: Api, whole: str, url: str, version: str | None) -> Any:
    """Return the document at `url` for a requested version, or at `whole` if none is requested.

    Raises FilesetError as the API does; platform-scope if the dataset exists but the version does
    not.
    """
    if version is None:
        return api.document(whole)
    return existing(api, whole, url, ScopeError(f"it has no version {version}", "wrong-version"))


def existing(api: Api, whole: str, url: str, none: ScopeError) -> Any:
    """Return the document at `url`; raise `none` if it is not found, and that at `whole` is.

    Raises FilesetError as the API does.
    """
    try:
        return api.document(url)
    except FilesetError as error:
        if error.status != "platform-404":
            raise
        api.document(whole)
        raise none from error


def read_pages(
    api: Api,
    first: str,
    hosts: Sequence[str],
    following: Callable[[Mapping[str, Any]], str | None],
) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of a list; `following` returns the URL of the next page.

    Raises FilesetError as `part_document` and `walk_pages` do.
    """

    def read(url: str) -> tuple[Mapping[str, Any], str | None]:
        page = mapping(part_document(api, url, hosts), f"the list at {url}")
        return page, following(page)

    return walk_pages(first, read)


def walk_pages(first: str, read: Callable[[str], tuple[T, str | None]]) -> Iterator[T]:
    """Yield the pages of a list; `read` returns a page and the URL of the next one.

    Raises FilesetError (platform-error) for a list that links back to itself or has too many pages.
    """
    seen: set[str] = set()
    url: str | None = first
    while url is not None:
        if url in seen or len(seen) >= MOST_PAGES:
            raise FilesetError("platform-error", f"the list at {first} is a loop or endless")
        seen.add(url)
        page, url = read(url)
        yield page


def base_url(url: str) -> str:
    """Return a URL's scheme and host, the start of API URLs; listed hosts always use https."""
    parts = urlsplit(url)
    if host(url) in DATAVERSE | INVENIORDM:
        return f"https://{host(url)}"
    # Not by builder.http.url, whose parser is not packed into functions that only read records.
    return f"{parts.scheme}://{parts.netloc}"
