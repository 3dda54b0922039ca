"""Routers of a site for other hosts, made of the texts in `templates/routers/`."""

import re
from pathlib import Path

from builder.errors import UsageError
from functions.oai.format import TEMPLATES

FILES = {
    "nginx.conf": "nginx, with njs: a server",
    "nginx.js": "its code",
    "apache.conf": "Apache, with mod_lua: a virtual host",
    "apache.lua": "its code",
    "worker.js": "a Cloudflare Worker over an R2 bucket, or over the assets of Pages",
    "wrangler.toml": "its configuration",
}
"""The files that routers consist of, and what each is."""
_FOLDER = TEMPLATES / "routers"
_CORE = ("core.js", "reading.js")
_MARK = re.compile(r"@(ROOT|BASE|PORT|CORE)@")
_SAFE = re.compile(r"[\w./:~+-]*")


def write_router(name: str, root: Path, base: str, port: int) -> str:
    """Return the file `name` of a router for the site in `root`, with the base URL (""; its own).

    Raises UsageError if a value would break its syntax.
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
    }
    return _MARK.sub(lambda mark: values[mark[1]], texts[name])
