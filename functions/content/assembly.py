"""Assembly: what answers for content, put together of a store and its configuration."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from functions.config.configuration import Configuration
from functions.content import wiring
from functions.content.handler import ContentApplication
from functions.content.protocols import Archives, Content
from functions.content.search import CaptureSearch
from functions.http import gateway, message
from functions.oai.lambda_instance import Answering, InstanceParts, now
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.store.connection import BucketConnection
from functions.store.signer import Signer
from functions.store.slice import Slices

Handler = Callable[[dict[str, Any]], dict[str, Any]]
"""An event in, its answer out."""


def application(
    repository: DuckRepository,
    uri: str,
    base: Path,
    settings: Configuration,
    environment: Mapping[str, str],
    clock: Callable[[], datetime],
    log: Callable[[str], None] | None = None,
    compress: Callable[[bytes], bytes] = message.compress,
    largest: int | None = None,
    *,
    guarded: bool = False,
) -> ContentApplication:
    """Return what answers with the content of the store at `uri`, which is seen from `base`.

    `base` is the folder of the configuration; for the rest see ContentApplication. Raises
    StoreError for an address that is none.
    """
    contents = wiring.contents(repository, uri, base, settings, environment)
    signer = Signer(
        BucketConnection.serving(settings), environment, settings["content.redirect_seconds"]
    )
    return ContentApplication(
        repository,
        contents,
        CaptureSearch(repository.catalogue, repository.files),
        settings,
        clock,
        log,
        compress=compress,
        largest=largest,
        lying=lying(contents.archives, contents.archives.own),
        sign=signer.address,
        guarded=guarded,
    )


def beside(content: ContentApplication, metadata: Handler) -> Handler:
    """Return what answers for both, by the path of what is asked; bodies are as `unpacked` has."""

    def answer(event: dict[str, Any]) -> dict[str, Any]:
        return content.answer(event) if content.takes(event) else metadata(event)

    return answer


def of_lambda(opened: InstanceParts) -> Answering:
    """Return what answers with the content of a store that an instance has opened."""
    return application(
        opened.repository,
        opened.settings["store.uri"],
        opened.root,
        opened.settings,
        opened.environment,
        now,
        opened.log,
        largest=gateway.LARGEST,
        guarded=True,
    )


def lying(archives: Archives, store: Slices) -> Callable[[Content, int, int], BinaryIO]:
    """Return what opens a part of a content where it lies as it is, in an archive or the store.

    It takes how many bytes to leave out, and how many to give, of a content with a stretch.
    """

    def open_range(content: Content, first: int, length: int) -> BinaryIO:
        stretch = content.stretch
        assert stretch is not None
        if content.capture is not None:
            return archives.open(stretch.address, stretch.offset + first, length)
        key = stretch.address.removeprefix(f"{store.address}/")
        return store.open(key, stretch.offset + first, length)

    return open_range
