"""A site of InvenioRDM on this machine, which processes of their own can ask."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.builder.sources.datasets import deposits
from tests.builder.sources.datasets.body import Body
from tests.builder.sources.datasets.server import Answer, Server

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
        return deposits.page(id_, self.base)

    def content(self, id_: str, path: str) -> str:
        return deposits.content(id_, path, self.base)

    def record(self, id_: str, bodies: Mapping[str, Body] = BODIES, **answers: Answer) -> str:
        """Have a record of files, and return its URL; `answers` are by the files' numbers."""
        given = {path: answers[f"n{n}"] for n, path in enumerate(bodies) if f"n{n}" in answers}
        return deposits.deposit(self.server, id_, bodies, answers=given, base=self.base)
