"""Sort-friendly URI reordering: the sort key of web archive indexes.

The rules are those of the Internet Archive's CDX. Lower case; scheme, user, `www` and default port
are dropped; the host is reversed. Escapes are decoded, then only necessary ones are restored.
Session identifiers are dropped and query arguments sorted. A URL without a valid host is unchanged.
An IPv4 address is reversed like a name, and an IPv6 address has no brackets, as in pywb and
cdxj-indexer.
"""

import re
from urllib.parse import unquote_to_bytes

from functions.snapshot import authority

METHOD = "__wb_method"
"""The argument that holds the method of a request, as in pywb and similar programs."""

_ANY_SCHEME = re.compile(r"\A(?:(?!file:)[a-z][a-z0-9+.\-]*://|https?:(?!/))", re.IGNORECASE)
_REST = re.compile(r"([^?#]*)(?:\?([^#]*))?")
_RUN = re.compile(r"/{2,}")
_DOT_SEGMENT = re.compile(r"/\.{1,2}(?:/|$)")
_ESCAPED = re.compile(rb"[^!-~]|[#%]")
_HEX = re.compile(rb"%[0-9A-Fa-f]{2}")
_ASPX_SESSION = re.compile(
    r"/(?:\([0-9a-z]{24}\)|\((?:[a-z]\([0-9a-z]{24}\))+\))(/[^?]{1,300}?\.aspx)"
)
_PATH_SESSION = re.compile(r";jsessionid=[0-9a-z]{32}")
_QUERY_SESSION = re.compile(
    r"(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}"
    r"|aspsessionid[a-z]{8}=[a-z]{24}"
    r"|cfid=[^&]{1,100}&cftoken=[^&]{1,100})(?:&|$)"
)


def of(raw: bytes) -> str:
    """Return the SURT of a URL's bytes, which may be invalid: ASCII, without spaces."""
    url = authority.text(raw)
    parts = authority.split(url)
    host = authority.parse(*parts[:2]) if parts else None
    return key(url, host.surt if host else None, parts[2] if parts else 0)


def of_request(raw: bytes, method: str | None, query: str | None) -> str:
    """Return the SURT that indexes the response to a request: ASCII, without spaces.

    `method` is None for a GET or an unknown method: then it is the URL's own SURT. Otherwise the
    method and `query`, the request's body, become arguments, as in pywb.
    """
    if method is None:
        return of(raw)
    # pywb drops these from a whole URL, so they are removed before anything is escaped.
    return of(request_url(raw, method, query).translate(None, b"\t\n\r").strip(b" "))


def request_url(raw: bytes, method: str, query: str | None) -> bytes:
    """Return the URL of a request with its method and `query` as arguments."""
    url = raw.partition(b"#")[0]
    argument = f"{METHOD}={method}" + (f"&{query}" if query else "")
    return url + (b"&" if b"?" in url else b"?") + argument.encode("utf-8", "surrogatepass")


def pywb_key(raw: bytes) -> str:
    """Return the key of a URL in indexes of pywb and cdxj-indexer, which the package surt makes.

    It has hosts for all schemes but file, and lower case also without a host. It drops tabs, but
    keeps backslashes and `;jsessionid`.
    """
    url = authority.text(raw.translate(None, b"\t\r\n"))
    for text in (url, _ANY_SCHEME.sub("http://", url, count=1)):
        parts = authority.split(text)
        if parts and (host := authority.parse(*parts[:2])):
            return key(text, host.surt, parts[2], plain=True)
    path, _, query = url.partition("#")[0].partition("?")
    path = _normal(path).removesuffix("/")
    path = _RUN.sub("/", path) if path.startswith("file:") else path
    return path + (f"?{_query(query)}" if query else "")


def key(url: str, host: str | None, path_at: int, *, plain: bool = False) -> str:
    """Return the SURT of a URL's text whose path begins at `path_at`: ASCII, no spaces.

    `host` is the SURT form of the URL's host, None if it has no host. `plain` is for `pywb_key`.
    """
    if host is None:
        return url
    match = _REST.match(url, path_at)
    path, query = match.groups() if match else ("", None)
    rest = _path(path, plain=plain)
    if query:
        arguments = _query(query)
        if arguments:
            rest += "?" + arguments
    return f"{host}){rest}"


def _path(path: str, *, plain: bool) -> str:
    path = _normal(path if plain else path.replace("\\", "/"))
    if ";" in path and not plain:
        path = _PATH_SESSION.sub("", path)
    if "(" in path:
        path = _ASPX_SESSION.sub(r"\1", path)
    if "//" in path:
        path = _RUN.sub("/", path)
    if "/." in path and _DOT_SEGMENT.search(path):
        segments: list[str] = []
        for segment in path.split("/")[1:]:
            if segment == "..":
                del segments[-1:]
            elif segment != ".":
                segments.append(segment)
        path = "/" + "/".join(segments)
    if path.endswith("/"):
        path = path[:-1]
    return path or "/"


def _query(query: str) -> str:
    query = _normal(query)
    if "id=" in query or "sessionid" in query:
        query = _QUERY_SESSION.sub("", query).rstrip("&") if _QUERY_SESSION.search(query) else query
    if "&" not in query:
        return query
    # By name, then by value: NUL never occurs in a URL's text and sorts before all name characters.
    arguments = [argument.replace("=", "\0", 1) for argument in query.split("&")]
    arguments.sort()
    return "&".join(arguments).replace("\0", "=")


def _normal(part: str) -> str:
    """Decode nested escapes, then escape only where necessary; lower case."""
    if "%" not in part:
        return part.lower()
    raw = part.encode("ascii")
    # Each pass shortens the text, but crafted nested escapes shorten it by two bytes only.
    for _ in range(8):
        if not _HEX.search(raw):
            break
        raw = unquote_to_bytes(raw)
    return _ESCAPED.sub(lambda match: b"%%%02x" % match[0][0], raw).decode("ascii").lower()
