"""A platform and a strategy of the tests' own, and an Ingest that is made of them."""

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from builder.sources.datasets.ingest import Ingest
from builder.sources.datasets.item import (
    ArchiveStrategyResult,
    Cdx,
    DatasetResource,
    Description,
    FileMeta,
    FilesetManifestFile,
    FilesetPlatformItem,
    IngestRequest,
    Terminal,
)
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts
from builder.sources.datasets.strategies import record
from functions.config import configuration
from tests.builder.sources.datasets.pages import Pages

HOST = "data.example.org"
DOCUMENTS: dict[str, Any] = {f"https://{HOST}/api": {}}
"""What the platform asks for, which tells nothing."""
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
SETTINGS = configuration.parse("", {})


def file(path: str = "a.csv", text: str = "a,b\n", **more: Any) -> FilesetManifestFile:
    data = text.encode()
    told = {"size": len(data), "md5": hashlib.md5(data).hexdigest(), "mimetype": "text/csv"}
    where = f"https://{HOST}/files/{path}"
    return FilesetManifestFile(path=path, platform_url=where, **{**told, **more})


def item(*files: FilesetManifestFile, id_: str = "1", **more: Any) -> FilesetPlatformItem:
    told = {"description": Description(title="Hives and harvests"), "version": "1", **more}
    return FilesetPlatformItem(
        platform_name="fake", platform_domain=HOST, platform_id=id_, manifest=files, **told
    )


def meta(text: str = "a,b\n") -> FileMeta:
    data = text.encode()
    return FileMeta(
        size_bytes=len(data),
        md5hex=hashlib.md5(data).hexdigest(),
        sha1hex=hashlib.sha1(data).hexdigest(),
        sha256hex=hashlib.sha256(data).hexdigest(),
        mimetype="text/csv",
    )


TERMINAL = Terminal(
    terminal_url=f"https://{HOST}/files/a.csv",
    terminal_dt="20261122100000",
    terminal_status_code=200,
    terminal_sha1hex=meta().sha1hex,
)
CDX = Cdx(
    surt="org,example,data)/files/a.csv",
    datetime="20261122100000",
    url=f"https://{HOST}/files/a.csv",
    mimetype="text/csv",
    status_code=200,
    sha1b32="A" * 32,
    warc_csize=300,
    warc_offset=200,
    warc_path="warcs/a.warc.gz",
)


Answer = FilesetPlatformItem | Exception | Callable[[], FilesetPlatformItem]


@dataclass
class Platform:
    """Gives items by the URLs that are asked for; the last one of several again and again."""

    items: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    facts = PlatformFacts("fake", "", "")

    def match_request(self, resource: DatasetResource) -> bool:
        return True

    def process_request(self, resource: DatasetResource, api: Api) -> FilesetPlatformItem:
        asked = resource.hops[0] if resource.hops else resource.url
        self.asked.append(asked)
        api.document(f"https://{HOST}/api")
        answers = self.items[asked]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Exception):
            raise found
        return found() if callable(found) else found


@dataclass
class Strategy:
    """Keeps nothing, and says that it did. `process_` stands in for `process`."""

    name: str
    fakes: "Fakes"

    def check_existing(self, item: FilesetPlatformItem) -> ArchiveStrategyResult | None:
        assert item.platform_id is not None
        return self.fakes.kept.get((self.name, item.platform_id))

    def process(self, item: FilesetPlatformItem) -> ArchiveStrategyResult:
        assert item.platform_id is not None
        fakes = self.fakes
        fakes.processed.append(item.platform_id)
        found = fakes.process(self, item)
        if found.status in ("success", "success-file"):
            again = replace(found, status="success-existing")
            fakes.kept[self.name, item.platform_id] = again
        return found


def archived(strategy: Strategy, item: FilesetPlatformItem) -> ArchiveStrategyResult:
    """Return what a strategy says that kept all files."""
    done = tuple(
        replace(file, status="verified", sha256="0" * 64, key=f"filesets/{file.path}")
        for file in item.files
    )
    single = strategy.name.endswith("-file")
    result = ArchiveStrategyResult(
        ingest_strategy=strategy.name,
        status="success",
        manifest=done,
        file_file_meta=meta() if single else None,
        file_terminal=TERMINAL if single else None,
        file_cdx=CDX if single and strategy.name.startswith("web") else None,
    )
    return record.add_withheld(result, item)


@dataclass
class Fakes:
    """All of it, and what was done."""

    platform: Platform = field(default_factory=Platform)
    settings: configuration.Configuration = SETTINGS
    process: Callable[[Strategy, FilesetPlatformItem], ArchiveStrategyResult] = archived
    kept: dict[tuple[str, str], ArchiveStrategyResult] = field(default_factory=dict)
    processed: list[str] = field(default_factory=list)
    until: list[float] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def give(self, url: str, *answers: Answer) -> IngestRequest:
        """Have the platform answer so for a URL, and return the request for it."""
        self.platform.items[url] = list(answers)
        return IngestRequest(url, given={"base_url": url})

    def ingest(self, seconds: float = 60, **more: Any) -> Ingest:
        def archive(
            item: FilesetPlatformItem, name: str, until: float, go_on: Callable[[], None]
        ) -> ArchiveStrategyResult:
            self.until.append(until)
            strategy = Strategy(name, self)
            return strategy.check_existing(item) or strategy.process(item)

        return Ingest(
            detect=self.detect,
            api=lambda until: Pages(DOCUMENTS),
            archive=archive,
            settings=self.settings,
            clock=lambda: NOW,
            seconds=seconds,
            stop=self.stop,
            monotonic=more.get("monotonic", time.monotonic),
        )

    def detect(self, request: IngestRequest, api: Api) -> tuple[DatasetResource, Platform]:
        if request.base_url not in self.platform.items:
            raise FilesetError("no-platform-match", f"no known platform hosts {request}")
        resource = DatasetResource(url=f"https://{HOST}/1", hops=(request.base_url,))
        return resource, self.platform
