"""Builds the content application from a store and its configuration."""

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
"""Returns the answer to an event."""


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
    """Return the application for the content of the store at `uri`, relative to `base`.

    `base` is the folder of the configuration. ContentApplication describes the other parameters.
    Raises StoreError if the address is invalid.
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
    """Return a handler for both, chosen by the request's path; bodies may be bytes or a Body."""

    def answer(event: dict[str, Any]) -> dict[str, Any]:
        return content.answer(event) if content.takes(event) else metadata(event)

    return answer


def of_lambda(opened: InstanceParts) -> Answering:
    """Return the content application over the store that a Lambda instance has opened."""
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
    """Return a function that opens a part of unpacked content in an archive or the store.

    It takes a content with a byte range, the number of bytes to skip and the number to return.
    """

    def open_range(content: Content, first: int, length: int) -> BinaryIO:
        stretch = content.stretch
        assert stretch is not None
        if content.capture is not None:
            return archives.open(stretch.address, stretch.offset + first, length)
        key = stretch.address.removeprefix(f"{store.address}/")
        return store.open(key, stretch.offset + first, length)

    return open_range
