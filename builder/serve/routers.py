"""Routers of a site for other hosts, made of the texts in `templates/routers/`."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builder.errors import UsageError
from functions.content import header_fields
from functions.http import http_message
from functions.oai.format import TEMPLATES
from functions.snapshot.errors import describe_failure
from functions.snapshot.site_names import TYPES

FILES = {
    "nginx.conf": "nginx, with njs: a server",
    "nginx.js": "its code",
    "apache.conf": "Apache, with mod_lua: a virtual host",
    "apache.lua": "its code",
    "Caddyfile": "Caddy: a site",
    "caddy.xml": "its template",
    "worker.js": "a Cloudflare Worker over an R2 bucket, or over the assets of Pages",
    "wrangler.toml": "its configuration",
    "cloudfront.js": "a CloudFront function before a bucket of S3, of a site on this machine",
    "missing.xml": "its answer in place of a file that is missing",
}
"""The files that routers consist of, and what each is."""
_FOLDER = TEMPLATES / "routers"
_CORE = ("core.js", "reading.js")
_MARK = re.compile(r"@(ROOT|BASE|PORT|CORE|GUARD|PAGES|TYPES)@")
GUARD = header_fields.replay_guard("'self'")
"""Headers of archived pages: they run no script, and load nothing from other hosts."""
_POLICY = "Content-Security-Policy"
PAGES = {
    **http_message.PAGES,
    _POLICY: f"{http_message.PAGES[_POLICY]}; frame-src 'self'",
}
"""Headers of all other pages, of which some have an archived one in a frame."""
_HEADERS = {"nginx.conf": 'add_header {} "{}";', "Caddyfile": 'header {} "{}"'}
_HEADERS["apache.conf"] = 'Header set {} "{}"'
"""How a configuration names a header."""
_MOST = 10_240
"""Bytes that a CloudFront function may have."""
_BRACKETS = ("Caddyfile", "caddy.xml")
_LITERAL = r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/g?)"""
"""Texts and regular expressions of JavaScript; ours has no division."""
_SAFE = re.compile(r"[\w./:~+-]*")


def write_router(name: str, root: Path, base: str, port: int) -> str:
    """Return the file `name` of a router for the site in `root`, with the base URL (""; its own).

    Raises UsageError if a value would break its syntax, or if a function gets too long.
    """
    for value in (str(root), base):
        if not _SAFE.fullmatch(value):
            raise UsageError(f"{value} has characters that a configuration cannot name")
    texts = {part: (_FOLDER / part).read_text("utf-8") for part in (name, *_CORE)}
    values = {
        "ROOT": str(root),
        "BASE": base,
        "PORT": str(port),
        "CORE": "".join(texts[part] for part in _CORE),
        "PARSER": texts[_CORE[0]],
        "TYPES": json.dumps(TYPES),
    }
    for mark, headers in (("GUARD", GUARD), ("PAGES", PAGES)):
        lines = (_HEADERS.get(name, "").format(*header) for header in headers.items())
        values[mark] = "\n    ".join(lines) if name in _HEADERS else json.dumps(headers)
    if name == "cloudfront.js":
        return _write_function(texts[name], values, root)
    text = _MARK.sub(lambda mark: values[mark[1]], texts[name])
    if name in _BRACKETS:
        # A template includes pages as they are only if they cannot have its brackets.
        text = text.replace("[[", "\x01[").replace("]]", "]\x01")
    return text


def _write_function(text: str, values: Mapping[str, str], root: Path) -> str:
    """Return a function that knows where each list begins, and where the newest publishes do.

    It knows the lists of sets, and all publishes, if they fit.
    """
    size = 0
    for with_sets, publishes in ((True, 9999), *((False, n) for n in (9999, 64, 32, 16, 8, 4, 2))):
        data = _embed(root, values["BASE"], publishes, with_sets=with_sets)
        code = _shorten(text.replace("@PARSER@", values["PARSER"])).replace("@DATA@", data)
        size = len(code.encode())
        if size <= _MOST:
            return code
    raise UsageError(f"the function has {size:,} bytes, and {_MOST:,} are allowed")


def _shorten(code: str) -> str:
    """Return JavaScript without comments, indents and spaces beside signs, outside literals."""
    code = re.sub(r"(?m)^\s*(?://.*)?\n|^\s+", "", code)
    parts = re.split(_LITERAL, code)
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(r" *([-+=?:|&<>!,;(){}\[\]]+) *", r"\1", parts[number])
    return "".join(parts)


def _embed(root: Path, base: str, publishes: int, *, with_sets: bool) -> str:
    """Return what a function without files must know of a site, as JSON. Raises UsageError."""
    try:
        router: dict[str, Any] = json.loads((root / "router.json").read_text("utf-8"))
        folders = sorted({row[letter] for row in router["formats"].values() for letter in "ri"})
        paths = [root / folder / "all.json" for folder in folders]
        with_sets = with_sets and router["records"] == "files"  # else sets share pages
        for folder in folders if with_sets else ():
            paths += sorted((root / folder / "set").glob("*.json"))
        chains = {
            path.relative_to(root).as_posix().removesuffix(".json"): _newest(path, publishes)
            for path in paths
        }
    except (OSError, ValueError) as error:
        raise UsageError(f"{root} is no site: {describe_failure(error)}") from error
    instants = sorted({instant for chain in chains.values() for instant, _ in chain})
    numbers = {instant: number for number, instant in enumerate(instants)}
    lists = {
        name: [[numbers[instant], firsts[0]] for instant, firsts in chain]
        for name, chain in chains.items()
    }
    data = {name: router[name] for name in ("response_date", "verbs", "forms", "has_sets")}
    formats = {p: {letter: row[letter] for letter in "ri"} for p, row in router["formats"].items()}
    data |= {"base": base or router["base"], "formats": formats, "with_sets": with_sets}
    # The pattern of a URI is long, and an identifier that is none is one of no item.
    data["forms"]["identifier"][0] = data["forms"]["resumptionToken"][0]
    data |= {"instants": instants, "lists": lists}
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


def _newest(path: Path, publishes: int) -> list[Any]:
    """Return the first publish of a list and the newest ones."""
    chain: list[Any] = json.loads(path.read_text("utf-8"))
    return [*chain[:1], *chain[1:][-publishes:]]
