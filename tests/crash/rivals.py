"""Processes that change one store side by side for a while, each with items of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from builder.intake import intake
from builder.intake.rows import IntakeWriter
from builder.publish.publish import publish
from builder.runtime import Runtime
from builder.snapshot import expiry
from builder.store.s3 import open_store
from functions.config import configuration
from functions.snapshot import pointer
from functions.snapshot.errors import Conflict
from functions.snapshot.store import Writer
from tests.builder.conftest import NAMESPACE, capture

_ITEMS = 6  # of each publisher that change again and again
_LEAST = 3  # publishes of each, however long they take
_LONGEST = 600  # seconds, after which a process is taken to stand still


@dataclass
class Place:
    """A store by its address, and the environment that a process needs to reach it."""

    address: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, *arguments: object) -> "subprocess.Popen[str]":
        """Begin a process of this module: publish FIRST SECONDS, or expire SECONDS."""
        command = [sys.executable, "-m", __name__, self.address, *map(str, arguments)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **self.environment}
        )

    def store(self) -> Writer:
        """Return the store, for this process."""
        variables = {**os.environ, **self.environment}
        return open_store(self.address, Path.cwd(), settings(variables), variables)

    def finished(self, process: "subprocess.Popen[str]") -> Any:
        """Wait for the process and return its account."""
        out, _ = process.communicate(timeout=_LONGEST)
        assert process.returncode == 0
        return json.loads(out)


def identifier(number: int) -> str:
    """Return the identifier of a captured item."""
    return f"oai:{NAMESPACE}:{capture(number).identity}"


def runtime(said: list[str]) -> Runtime:
    """Return surroundings with the machine's own clock."""
    return Runtime(lambda: datetime.now(UTC), time.sleep, said.append, {}, 1)


def settings(variables: Mapping[str, str] = os.environ) -> configuration.Configuration:
    """Return the configuration of every process."""
    text = f'[repository]\nnamespace = "{NAMESPACE}"\n[publish]\nlead = 1\n'
    return configuration.parse(text, dict(variables))


def _publishing(store: Writer, first: int, seconds: float) -> dict[str, Any]:
    """Ingest and publish for some seconds and often enough; tell the items' titles in the end."""
    said, titles = list[str](), dict[str, str]()
    counts = {"publishes": 0, "given up": 0}
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end or counts["publishes"] < _LEAST:
        changing, new = first + number % _ITEMS, first + _ITEMS + number
        some = dict.fromkeys((changing, new), f"{first} {number}")
        with tempfile.TemporaryDirectory() as scratch:
            part = IntakeWriter(Path(scratch), "000000")
            for item, title in some.items():
                part.capture(capture(item, title=title), capture(item).sets)
            part.close()
            source = intake.IntakeSource("a.warc.gz", "d", "a", "warc.gz", 1, 2, 0, 0, {}, {})
            name = f"{time.time_ns():020}-{first}"
            intake.commit(store, intake.IntakeRun(name, (source,)), Path(scratch))
        titles.update({identifier(item): title for item, title in some.items()})
        try:
            publish(store, settings(), runtime(said))
            counts["publishes"] += 1
        except Conflict:  # others were faster every time; the intake is kept for the next publish
            counts["given up"] += 1
        number += 1
    conflicts = sum("starting over" in text for text in said)
    waits = sum("waiting" in text for text in said)
    return {"titles": titles, "conflicts": conflicts, "waits": waits, **counts}


def _expiring(store: Writer, seconds: float) -> dict[str, Any]:
    """Expire again and again, as eagerly as readers allow, and until there was something to."""
    done = {"snapshots": 0, "objects": 0, "expiries": 0, "given up": 0}
    end = time.monotonic() + seconds
    while time.monotonic() < end or not done["snapshots"]:
        try:
            expired = expiry.expire(store, runtime([]))
            done["snapshots"] += len(expired.retired)
            done["objects"] += expired.objects
            done["expiries"] += 1
        except Conflict:
            done["given up"] += 1
        time.sleep(1)
    return done


def main(address: str, role: str, *arguments: str) -> None:
    """Do one role, and print its account."""
    # All is faster here than it is: old snapshots go, and young orphans, under everybody's hands.
    pointer.REMEMBERED = timedelta(seconds=3)
    expiry.ORPHAN_AGE = timedelta(seconds=0.2)
    store = Place(address, dict(os.environ)).store()
    if role == "publish":
        account = _publishing(store, int(arguments[0]), float(arguments[1]))
    else:
        account = _expiring(store, float(arguments[0]))
    print(json.dumps(account))


if __name__ == "__main__":
    main(*sys.argv[1:])
