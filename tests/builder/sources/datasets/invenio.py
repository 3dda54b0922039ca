"""A site of InvenioRDM on this machine, which processes of their own can ask."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.builder.sources.datasets.body import Body, digest
from tests.builder.sources.datasets.server import Server, json_of, served

BODIES: dict[str, bytes] = {f"{n}.bin": bytes([65 + n]) * 3000 for n in range(5)}


def reach(server: Server) -> dict[str, str]:
    """Return the settings by which a process of its own reaches a server of this machine."""
    return {
        "http.allow_networks": '["127.0.0.0/8"]',
        "http.ports": f"[{server.port}]",
        "http.host_concurrent": "8",
    }


@dataclass
class Site:
    """A site of InvenioRDM at the fake server, by its address."""

    server: Server

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def url(self, id_: str) -> str:
        return f"{self.base}/records/{id_}"

    def content(self, id_: str, path: str) -> str:
        return f"{self.base}/api/records/{id_}/files/{path}/content"

    def record(self, id_: str, bodies: Mapping[str, Body] = BODIES, **answers: Any) -> str:
        """Have a record of files, and return its URL; `answers` are by the files' numbers."""
        api = f"{self.base}/api/records/{id_}"
        entries = {
            path: {
                "key": path,
                "size": len(body),
                "checksum": f"md5:{digest('md5', body)}",
                "links": {"content": self.content(id_, path)},
            }
            for path, body in bodies.items()
        }
        told = {
            "id": id_,
            "parent": {"id": f"{id_}-all"},
            "pids": {"doi": {"identifier": f"10.5072/{id_}"}},
            "links": {"self": api, "self_html": self.url(id_)},
            "metadata": {"title": f"Hives {id_}", "resource_type": {"id": "dataset"}},
            "access": {"record": "public", "files": "public"},
            "files": {"enabled": True, "count": len(entries), "entries": entries},
            "is_published": True,
        }
        self.server.add(api, json_of(told))
        for number, (path, body) in enumerate(bodies.items()):
            answer = answers.get(f"n{number}") or served(body)
            self.server.add(self.content(id_, path), answer)
        return self.url(id_)
