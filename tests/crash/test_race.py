"""Two publishers, an expiry and a harvester at once, each a process: nothing is lost or doubled.

RACE_SECONDS=60 lets them run for a minute.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from lxml import etree

from builder.publish.publish import publish
from tests.bucket import fresh
from tests.crash.rivals import Place, runtime, settings
from tests.extent import SECONDS
from tests.functions.oai.validity import OAI, valid

LONG = pytest.mark.skipif("RACE_SECONDS" not in os.environ, reason="RACE_SECONDS is not given")
_PATIENCE = 100  # half seconds, on the busiest machine
DC = "{http://purl.org/dc/elements/1.1/}"


@pytest.fixture(params=["folder", "moto", pytest.param("weed", marks=LONG)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "folder":
        yield Place(str(tmp_path / "store"))
        return
    with closing(fresh(request.getfixturevalue(f"{request.param}_server"))) as bucket:
        yield Place(bucket.uri, bucket.environment)


@dataclass
class Harvester:
    """Harvests what is new since its last harvest, over HTTP; knows each item's last title."""

    url: str
    titles: dict[str, str] = field(default_factory=dict)
    since: str = ""
    pages: int = 0
    harvests: int = 0
    refused: int = 0

    def harvest(self) -> list[str]:
        """Harvest once, and return the identifiers that came."""
        asked = {"verb": "ListRecords", "metadataPrefix": "oai_dc"}
        if self.since:
            asked["from"] = self.since
        first, found = "", list[str]()
        while True:
            root = self._page(asked)
            first = first or root.findtext(f"{OAI}responseDate") or ""
            for record in root.iter(f"{OAI}record"):
                name = record.findtext(f"{OAI}header/{OAI}identifier") or ""
                self.titles[name] = next((e.text or "" for e in record.iter(f"{DC}title")), "")
                found.append(name)
            token = root.findtext(f"{OAI}ListRecords/{OAI}resumptionToken")
            if not token:
                break
            asked = {"verb": "ListRecords", "resumptionToken": token}
        self.since = first
        self.harvests += 1
        return found

    def _page(self, asked: dict[str, str]) -> etree._Element:
        for _ in range(_PATIENCE):
            try:
                with urlopen(f"{self.url}?{urlencode(asked)}", timeout=60) as reply:
                    self.pages += 1
                    return valid(reply.read())
            except HTTPError as error:
                if error.code != 503 or not error.headers["Retry-After"]:
                    raise
                self.refused += 1
                time.sleep(0.5)
        raise AssertionError("the server never answered")


@contextmanager
def served(place: Place, folder: Path) -> Iterator[str]:
    """Serve the store by a process of its own; give the base URL."""
    config = folder / "sheaf.toml"
    config.write_text('[repository]\nnamespace = "archive.example.org"\n[pages]\nrecords = 5\n')
    command = [sys.executable, "-m", "builder.cli", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--config", str(config), "--store", place.address],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **place.environment},
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"(http://\S+/oai)", line)
            if found:
                yield found[1]
                break
        else:
            pytest.fail("it does not serve")
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.sampled(3)
def test_publishers_expiry_and_harvester_at_once(place: Place, tmp_path: Path) -> None:
    place.finished(place.start("publish", 90_000, 0.01))  # something is there to serve
    workers = [place.start("publish", first, SECONDS) for first in (10_000, 20_000)]
    expiry = place.start("expire", SECONDS)
    with served(place, tmp_path) as url:
        harvester = Harvester(url)
        while any(process.poll() is None for process in (*workers, expiry)):
            harvester.harvest()
            time.sleep(0.5)
        accounts = [place.finished(worker) for worker in workers]
        expired = place.finished(expiry)
        # What a publisher gave up last is still in the intake.
        publish(place.store(), settings(), runtime([]))
        expected = {name: title for a in accounts for name, title in a["titles"].items()}

        def mine() -> dict[str, str]:
            return {name: harvester.titles.get(name, "") for name in expected}

        for _ in range(_PATIENCE):
            harvester.harvest()
            if mine() == expected:
                break
            time.sleep(0.5)
        assert mine() == expected
        anew = Harvester(url)
        names = anew.harvest()
        assert len(names) == len(set(names))
        assert anew.titles == harvester.titles
    report = [{k: v for k, v in account.items() if k != "titles"} for account in accounts]
    print(
        f"\n{SECONDS:.0f} s: {len(expected)} items; publishers {report}; expiry {expired}; "
        f"{harvester.harvests} harvests, {harvester.pages} pages, {harvester.refused} refused"
    )
    assert harvester.harvests > 3
