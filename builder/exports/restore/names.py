"""File paths of URLs: the natural path of a URL, independent of other URLs.

The form is `host/path` as in wget, `index.html` for a path that ends with a slash, and `@query`
after the name. Escaped characters of the URL's path are decoded if every system allows them in a
name. Characters that no name may hold are written %XX. Otherwise nothing of a path is dropped or
changed. So two URLs have the same path in two cases only. They differ just in scheme, user,
fragment or default port, or a part was cut for its length. FileName reports both.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote, unquote_to_bytes

from builder.text import is_device

LONGEST = 255
"""Maximum bytes of a name in UTF-8: the limit of file systems."""
WHOLE = 1024
"""Maximum bytes of a path; systems allow 4,096, of which the destination folder takes some."""
DEPTH = 48
"""Maximum number of names in a path."""
INDEX = "index.html"
MANIFEST = "manifest.jsonl"
"""The manifest of a restored folder; beside it are only folders."""
MARKED = 21
"""Length of a mark: a tilde and 20 hexadecimal digits. No natural name ends with one."""
_NATURAL = WHOLE - MARKED - len(INDEX) - 1
"""Maximum bytes of a natural path; a mark, and a name within it, may be added."""

EXTENSIONS: Mapping[str, tuple[str, ...]] = {
    # media type: its usual extensions, of which the first is added
    "text/html": (".html", ".htm", ".xhtml", ".shtml"),
    "application/xhtml+xml": (".xhtml", ".html", ".htm"),
    "text/css": (".css",),
    "image/svg+xml": (".svg",),
    "text/javascript": (".js", ".mjs"),
    "application/javascript": (".js", ".mjs"),
    "application/x-javascript": (".js", ".mjs"),
    "application/pdf": (".pdf",),
}
"""Types that a browser recognises only by the extension when it reads from a disk."""

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(//)?(.*)", re.DOTALL)
_WEB = {"http": "80", "https": "443"}
_PORT = re.compile(r"(.*?):([0-9]*)", re.DOTALL)
_MARK = re.compile(r"~(?=[0-9a-f]{20}(?:\.[0-9A-Za-z]{1,10})?$)")
_EXTENSION = re.compile(r"(?<=.)\.[0-9A-Za-z]{1,10}$")
_BEYOND = re.compile("[^!#-;=?-~]+")
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PLAIN = re.compile(r"[0-9A-Za-z_\-][0-9A-Za-z_\-.,=&+!$'()]*")


@dataclass(frozen=True, slots=True)
class FileName:
    """A path (names separated by `/`), and the reason why it is not the natural one, or ""."""

    path: str
    why: str = ""


def identity(url: str) -> str:
    """Return the identity of a URL: URLs with the same identity share one file.

    It has no fragment and no default port; https becomes http; scheme and host are lower case.
    """
    scheme, host, rest = _split_url(url)
    if host is None:
        return f"{scheme}:{rest}" if scheme else rest
    return f"//{host}{rest}" if scheme in _WEB else f"{scheme}://{host}{rest}"


def natural(url: str, media_type: str = "") -> FileName:
    """Return the path of a URL, with the extension of the media type if one is given.

    It is relative, without empty, `.` or `..` names, each of at most LONGEST bytes.
    """
    scheme, host, rest = _split_url(url)
    path, question, query = rest.partition("?")
    parts = path.split("/")
    if host is None:
        top = ["@" + (scheme or "none")]
    else:
        parts = parts[1:]
        top = [*([] if scheme in _WEB else ["@" + scheme]), _host(host)]
    *folders, last = map(_unescape, parts)
    file = last.replace("@", "%40") or INDEX
    plain = unquote(parts[-1]) == last and _make_portable(file) == (last or INDEX)
    if question:  # a query is unchanged, except for characters that no name can hold
        text = _PERCENT.sub("%25", query)
        seen = (c if c == "%" or _is_seen(c, keep=False) else _hexadecimal(c) for c in text)
        file += f"@{''.join(seen)}"
    extensions = EXTENSIONS.get(media_type)
    file = _make_portable(
        file if extensions is None or file.lower().endswith(extensions) else file + extensions[0]
    )
    folders = [_make_portable(name or "%") for name in folders]
    plain = plain and all(unquote(p) == f for p, f in zip(parts, folders, strict=False))
    name = _shorten(url, [*map(_make_portable, top), *folders], file)
    return name if name.why or plain else FileName(name.path, "escaped")


def mark(path: str, url: str) -> str:
    """Return the path with a mark that is unique to this URL, before its extension."""
    folder, slash, name = path.rpartition("/")
    return folder + slash + _with_mark(name, url)


def within(path: str) -> str:
    """Return the path of a file whose natural path is also a folder."""
    return f"{path}/{INDEX}"


def fold(path: str) -> str:
    """Return the case-folded and normalised path, since some file systems ignore the difference."""
    if path.isascii():
        return path.lower()
    text = unicodedata.normalize("NFKC", path).casefold()
    return unicodedata.normalize("NFKC", text)


def above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the outermost first."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _split_url(url: str) -> tuple[str, str | None, str]:
    """Return scheme, host (with a port unless it is the default), and path with query, in ASCII."""
    url = url.partition("#")[0]
    url = _BEYOND.sub(lambda match: quote(match[0], safe="", errors="surrogatepass"), url)
    match = _PARTS.fullmatch(url)
    if not match:
        return "", None, url
    scheme, slashes, rest = match[1].lower(), match[2], match[3]
    if not slashes:
        return scheme, None, rest
    end = min((at for at in map(rest.find, "/?\\") if at >= 0), default=len(rest))
    host = rest[:end].rpartition("@")[2].lower()
    port = _PORT.fullmatch(host) if not host.endswith("]") else None
    if port and port[2] in ("", _WEB.get(scheme)):
        host = port[1]
    rest = rest[end:]
    return scheme, host, rest if rest.startswith("/") else "/" + rest


def _host(host: str) -> str:
    """Return the folder name of a host, distinct from names that a restore uses itself."""
    match = _PORT.fullmatch(host) if not host.endswith("]") else None
    name, port = (match[1], match[2]) if match else (host, "")
    name = _unescape(name).replace("+", "%2B").replace("@", "%40") or "%"
    if name.startswith(".") or fold(name) == MANIFEST:
        name = _first(name)
    return f"{name}+{_unescape(port)}" if port else name


def _unescape(text: str) -> str:
    """Return a part of a path as a name, with escapes decoded if the name allows it."""
    if _PLAIN.fullmatch(text):
        return text
    decoded = unquote_to_bytes(text).decode("utf-8", "surrogateescape")
    keep = unicodedata.is_normalized("NFC", decoded)
    return "".join(c if _is_seen(c, keep=keep) else _hexadecimal(c) for c in decoded)


def _is_seen(character: str, *, keep: bool) -> bool:
    """Return whether a character may stand in a name; beyond ASCII only if `keep`."""
    if character in '<>:"/\\|?*%':
        return False
    if character.isascii():
        return character.isprintable()
    if not keep or unicodedata.category(character) in _UNSEEN:
        return False
    return unicodedata.category(character) != "Zs"


def _hexadecimal(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))


def _make_portable(name: str) -> str:
    """Return a name valid on every system (except for its length), and unique for each name."""
    if is_device(name):
        name = _first(name)
    if not name.strip("."):
        name = _hexadecimal(name)
    elif name[-1] in ". ":
        name = name[:-1] + _hexadecimal(name[-1])
    return _MARK.sub("%7E", name)


def _first(name: str) -> str:
    return _hexadecimal(name[0]) + name[1:]


def _shorten(url: str, folders: list[str], file: str) -> FileName:
    """Return the path with names and depth within the limits; a cut path has a mark."""
    why = "long-name" if any(len(n.encode()) > LONGEST for n in (*folders, file)) else ""
    folders = [
        name if len(name.encode()) <= LONGEST else _with_mark(name, name) for name in folders
    ]
    file = _with_mark(file, url) if len(file.encode()) > LONGEST else file
    path = "/".join((*folders, file))
    if len(path.encode()) <= _NATURAL and len(folders) < DEPTH:
        return FileName(path, why)
    left, size = folders[:1], len(folders[0].encode())
    for name in folders[1 : DEPTH - 1]:
        size += len(name.encode()) + 1
        if size > _NATURAL - LONGEST - 1:
            break
        left.append(name)
    return FileName("/".join((*left, _with_mark(file, url))), "long-path")


def _with_mark(name: str, whose: str) -> str:
    """Return a name with the mark of a URL, or of itself, its beginning cut if necessary."""
    digest = hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()
    match = _EXTENSION.search(name)
    stem, extension = (name[: match.start()], match[0]) if match else (name, "")
    room = LONGEST - MARKED - len(extension)
    stem = stem.encode()[:room].decode("utf-8", "ignore")
    return f"{stem}~{digest[: MARKED - 1]}{extension}"
