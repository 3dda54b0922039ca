"""The command `sheaf` in a folder of its own, led to the fake server."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from builder.commands import cli
from builder.sources.datasets import wiring
from builder.store.folder import FolderStore
from functions.snapshot.errors import StoreError
from tests.builder.http import certificates
from tests.builder.sources.datasets.server import Server
from tests.builder.sources.datasets.world import World
from tests.clock import make_context


@dataclass
class Command:
    """The command, in a folder with a configuration of its own."""

    server: Server
    folder: Path
    capsys: pytest.CaptureFixture[str]
    defaults: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        """Run it, and return what it printed."""
        self.capsys.readouterr()
        given = [*arguments, "--config", str(self.folder / "sheaf.toml")]
        assert cli.main(given, make_context) == code, self.capsys.readouterr()
        found = self.capsys.readouterr()
        return found.out, found.err

    def results(
        self, *arguments: str, code: int = 0, lines: str | None = None
    ) -> list[dict[str, Any]]:
        """Run it for results as JSON; `lines` are what stdin gives."""
        path = self.folder / "lines"
        path.write_text(lines or "", "utf-8")
        with path.open() as stdin, pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", stdin)
            json_ = ["--json"] if lines is None else []
            out, _ = self("fileset", *json_, *arguments, code=code)
        return [json.loads(line) for line in out.splitlines()]

    def configure(self, **settings: str) -> None:
        """Have the configuration say so; `__` of a key stands for `.`."""
        given = {
            "repository.admin_emails": '["bees@archive.example.org"]',
            "repository.namespace": '"archive.example.org"',
            "store.uri": '"store"',
            "publish.lead": "5",
            "fileset.strategy": '"s3"',
            "http.host_seconds": "0",
            "http.backoff_seconds": "0",
            **self.defaults,
            **{name.replace("__", "."): value for name, value in settings.items()},
        }
        lines = [f"{name} = {value}" for name, value in given.items()]
        (self.folder / "sheaf.toml").write_text("\n".join(lines), "utf-8")

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.folder / "store")


def refuse_runs(monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """Let no run of the intake be kept."""

    def refused(self: FolderStore, key: str, data: bytes) -> None:
        if key.endswith("run.json"):
            raise StoreError(why)
        create(self, key, data)

    create = FolderStore.create
    monkeypatch.setattr(FolderStore, "create", refused)


def led_to(there: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the ways of the command lead to the fake server's hosts, and to no other."""
    ways = wiring.ways

    def led(*given: Any) -> Any:
        found = ways(*given)
        client = replace(found.client, addresses=there.names, tls=certificates.trusted())
        return replace(found, client=client, limits=there.ways.limits)

    monkeypatch.setattr(wiring, "ways", led)


def made(
    there: World,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Command:
    """Return the command, configured; it reaches the fake server's hosts and no other."""
    led_to(there, monkeypatch)
    command = Command(there.server, folder, capsys)
    command.configure()
    return command
