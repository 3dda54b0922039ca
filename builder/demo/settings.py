"""The demo's settings: the values of its `sheaf.toml` that are not defaults."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from functions.config import configuration

NAMESPACE = "demo.example.org"
_SETTINGS = {
    "repository.name": "Sheaf's demonstration",
    "repository.admin_emails": ["demo@example.org"],
    "repository.namespace": NAMESPACE,
    "pages.records": 20,
    "publish.lead": 1,
    "serve.clock_allowance": 1,  # one machine has one clock
    "fileset.strategy": "s3",  # files of datasets as objects of the store, not within a WARC
    "http.host_seconds": 0,  # the host is this machine
    "content.serve": True,
    "sets.names": {"collection:demo": "Collection of the demonstration"},
}
_LOOPBACK = {"http.allow_networks": ["127.0.0.0/8"]}


def write(path: Path, archives: Sequence[str], port: int | None = None) -> None:
    """Write the configuration for archive files in the folders `archives`.

    With `port`, files may be fetched from this port of this machine.
    """
    settings: dict[str, Any] = {**_SETTINGS, "content.archives": list(archives)}
    if port is not None:
        settings |= {**_LOOPBACK, "http.ports": [port]}
    path.write_text(configuration.template(settings), "utf-8")
