"""A little of archive.org: items that are written as S3 objects and read as metadata.

It keeps to what its library and documentation say: an item is made with its first file, a file's
MD5 must be that of Content-MD5, keys stand in `Authorization: LOW access:secret`, files of its own
are listed beside those that were put there, and what is put is listed once it was worked on.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.builder.sources.datasets.server import Exchange, Server, json_of, status, text

KEYS = {"IA_ACCESS_KEY": "access", "IA_SECRET_KEY": "secret"}
S3, META = "https://s3.us.archive.org/*", "https://archive.org/metadata/*"


@dataclass
class Internet:
    """What archive.org has: bytes by item and path, and the metadata that items were made with.

    `refusals` are statuses that the next uploads are refused with. While `slow`, what was put is
    not listed, and the item says that it is being worked on.
    """

    items: dict[str, dict[str, bytes]] = field(default_factory=dict)
    metadata: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    slow: bool = False
    spoils: bool = False

    def puts(self) -> list[str]:
        return [path for method, path in self.log if method == "PUT"]

    def told(self, name: str) -> dict[str, Any]:
        """Return the answer of the metadata API; an item that is not is an empty one."""
        if name not in self.items:
            return {}
        made = [{"name": f"{name}_meta.xml", "source": "metadata", "md5": "0" * 32}]
        listed = [] if self.slow else [_row(p, b) for p, b in self.items[name].items()]
        more = {"pending_tasks": True} if self.slow else {}
        return {"metadata": {"identifier": name}, "files": [*made, *listed], **more}

    def answer_metadata(self, exchange: Exchange) -> None:
        target = exchange.asked.target
        self.log.append(("GET", target))
        known = self.told(target.removeprefix("/metadata/"))
        (status(self.unread.pop(0)) if self.unread else json_of(known))(exchange)

    def answer_upload(self, exchange: Exchange) -> None:
        headers, target = exchange.asked.headers, exchange.asked.target
        self.log.append((exchange.asked.method, target))
        assert "transfer-encoding" not in headers
        body = exchange.read_body()
        if headers.get("authorization") != "LOW access:secret":
            _refuse(exchange, 403, "AccessDenied")
        elif headers["content-md5"] != hashlib.md5(body).hexdigest():
            _refuse(exchange, 400, "BadDigest")
        elif self.refusals:
            _refuse(exchange, self.refusals.pop(0), "SlowDown")
        else:
            _, item, path = unquote(target).split("/", 2)
            if item not in self.items:
                self.items[item] = {}
                self.metadata[item] = _metadata(headers)
            self.items[item][path] = body[:-1] + b"!" if self.spoils else body
            status(200)(exchange)


def _metadata(headers: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in sorted(headers.items()):
        head, _, key = name.partition("x-archive-meta")
        if not head and key:
            plain = unquote(value[4:-1]) if value.startswith("uri(") else value
            found.setdefault(key.split("-", 1)[1].replace("--", "_"), []).append(plain)
    return found


def _refuse(exchange: Exchange, code: int, name: str) -> None:
    error = f"<Error><Code>{name}</Code><Message>no: {name}</Message></Error>"
    text(error, "application/xml", code)(exchange)


def internet(server: Server) -> Internet:
    """Give archive.org, empty, at a server."""
    site = Internet()
    server.add(S3, site.answer_upload)
    server.add(META, site.answer_metadata)
    return site


def _row(path: str, body: bytes) -> dict[str, str]:
    return {
        "name": path,
        "source": "original",
        "size": str(len(body)),
        "md5": hashlib.md5(body).hexdigest(),
        "sha1": hashlib.sha1(body).hexdigest(),
    }
