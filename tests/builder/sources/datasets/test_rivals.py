"""Two workers at one dataset at once, who know nothing of each other."""

import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from builder.sources.datasets import wiring
from builder.sources.datasets.item import IngestOutcome, IngestRequest
from builder.sources.datasets.wiring import Materials
from functions.snapshot.store import Writer
from tests.builder.sources.datasets.deposits import deposit
from tests.builder.sources.datasets.server import Server, served
from tests.builder.sources.datasets.world import PLAIN, settings_of, world

BODIES = {f"{n}.bin": bytes([65 + n]) * 5000 for n in range(4)}
WAYS = {
    "files": {"fileset.strategy": "s3"},
    "bundle": {"fileset.strategy": {"backend": "s3", "bundle": "always"}},
    "web": {"fileset.strategy": "web"},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("leases", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_both_find_it_archived_and_it_is_there_once(
    server: Server, store: Writer, tmp_path: Path, way: str, leases: bool
) -> None:
    """With leases they also fetch it once, as if each had a machine of its own."""
    url = deposit(server, 11, BODIES, answers={"3.bin": served(BODIES["3.bin"], drip=(0.01, 500))})
    ready = threading.Barrier(3)
    settings: dict[str, Any] = {**PLAIN, **WAYS[way]}

    def materials(number: int) -> Materials:
        scratch = tmp_path / f"scratch-{number}"
        scratch.mkdir()
        return world(server, scratch, **settings).materials(
            store,
            settings=settings_of(settings),
            clock=lambda: datetime(2026, 11, 22, 10, 0, number, tzinfo=UTC),
            sleep=time.sleep if leases else None,
        )

    def work(own: Materials) -> IngestOutcome:
        ingest = wiring.ingest(own, threading.Event(), 60)
        ready.wait(30)
        return ingest.process(IngestRequest(url))

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(work, [materials(number) for number in range(3)]))
    statuses = Counter(outcome.status for outcome in found)
    assert statuses.keys() <= {"success", "success-existing"}, [o.detail for o in found]
    told = {
        tuple((f.path, f.sha256, f.key, f.offset) for f in outcome.archived.manifest)
        for outcome in found
        if outcome.archived
    }
    assert len(told) == 1
    keys = [*store.keys("filesets/"), *store.keys("warcs/")]
    assert sum(key.endswith("/fileset.json") for key in keys) == 1
    assert sum("/platform-" in key for key in keys) == 1
    objects = [key for key in keys if not re.search(r"/fileset\.json$|/platform-", key)]
    assert len(objects) == (len(BODIES) if way == "files" else 1)
    if leases:
        fetched = Counter(asked.url for asked in server.asked() if asked.url.endswith("/content"))
        assert sorted(fetched.values()) == [1] * len(BODIES)
