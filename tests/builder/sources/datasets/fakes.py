"""A platform of the tests' own, and an Ingest over it that keeps nothing and says that it did."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from builder.sources.datasets.ingest import Ingest
from builder.sources.datasets.item import (
    ArchiveStrategyResult,
    DatasetResource,
    FilesetPlatformItem,
    IngestRequest,
)
from builder.sources.datasets.protocols import Api, FilesetError, PlatformFacts
from functions.config import configuration
from tests.builder.sources.datasets import outcomes
from tests.builder.sources.datasets.pages import Pages

HOST = "data.example.org"
DOCUMENTS: dict[str, Any] = {f"https://{HOST}/api": {}}
"""What the platform asks for, which tells nothing."""
NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
Answer = FilesetPlatformItem | Exception | Callable[[], FilesetPlatformItem]
Process = Callable[[str, FilesetPlatformItem], ArchiveStrategyResult]
"""Says what came of archiving an item by the strategy of that name."""


def archived(strategy: str, item: FilesetPlatformItem) -> ArchiveStrategyResult:
    """Say that all files were kept."""
    return outcomes.archived(item, strategy=strategy)


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
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer


@dataclass
class Fakes:
    """All of it, and what was done."""

    process: Process = archived
    platform: Platform = field(default_factory=Platform)
    processed: list[str | None] = field(default_factory=list)
    until: list[float] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def give(self, url: str, *answers: Answer) -> IngestRequest:
        """Have the platform answer so for a URL, and return the request for it."""
        self.platform.items[url] = list(answers)
        return IngestRequest(url, given={"base_url": url})

    def ingest(
        self, seconds: float = 60, monotonic: Callable[[], float] = time.monotonic
    ) -> Ingest:
        return Ingest(
            detect=self.detect,
            api=lambda until: Pages(DOCUMENTS),
            archive=self.archive,
            settings=configuration.parse("", {}),
            clock=lambda: NOW,
            seconds=seconds,
            stop=self.stop,
            monotonic=monotonic,
        )

    def archive(
        self, item: FilesetPlatformItem, name: str, until: float, go_on: Callable[[], None]
    ) -> ArchiveStrategyResult:
        self.until.append(until)
        self.processed.append(item.platform_id)
        return self.process(name, item)

    def detect(self, request: IngestRequest, api: Api) -> tuple[DatasetResource, Platform]:
        if request.base_url not in self.platform.items:
            raise FilesetError("no-platform-match", f"no known platform hosts {request}")
        resource = DatasetResource(url=f"https://{HOST}/1", hops=(request.base_url,))
        return resource, self.platform
