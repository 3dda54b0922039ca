"""Ingest: carries out requests, many in parallel; each has exactly one outcome.

The steps: detect the platform, read its description, choose a strategy, look for archived files,
and archive the others. A failure at any step is an outcome too.

The order of a dataset's versions is a text that sorts like the versions. Its first letter says what
it was made from. Texts with different letters cannot be compared. There is no order for platforms
where authors choose version names: a version that seems lower would block all later ones.
"""

import math
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from builder.sources.datasets import status
from builder.sources.datasets.item import (
    DATASET,
    ArchiveStrategyResult,
    DatasetResource,
    FilesetPlatformItem,
    IngestOutcome,
    IngestRequest,
)
from builder.sources.datasets.protocols import (
    Api,
    FilesetError,
    FilesetPlatformHelper,
)
from builder.sources.datasets.strategies import keys
from builder.sources.datasets.strategies.choice import (
    ARCHIVEORG,
    StrategyChoice,
    apply_limits,
    choose,
)
from functions.config.configuration import Configuration
from functions.snapshot.errors import DamagedStore, StoreError


def by_turns(
    process: Callable[[IngestRequest], IngestOutcome],
    requests: Iterable[IngestRequest],
    stop: threading.Event,
) -> Callable[[], Iterator[IngestOutcome]]:
    """Return the work of each thread of a crew that carries out requests by `process`.

    Requests are taken from the iterable one by one, as threads become free. Only one thread at a
    time asks it, and it must end soon after `stop` is set. `process` raises no Exception.
    """
    source, asking = iter(requests), threading.Lock()

    def work() -> Iterator[IngestOutcome]:
        while True:
            with asking:
                request = None if stop.is_set() else next(source, None)
            if request is None:
                return
            yield process(request)

    return work


_INDEX, _NUMBERS, _RECORD_ID = "i", "n", "r"
_NUMBERED = frozenset({"dataverse", "dryad", "figshare", "mendeley"})
"""Platforms that number the versions of a dataset."""
_ASCENDING = frozenset({"zenodo"})
"""Platforms whose versions are records; later records have higher ids."""

_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){0,7}")
_WIDTH = 12
Detect = Callable[[IngestRequest, Api], tuple[DatasetResource, FilesetPlatformHelper]]
"""Finds the resource of a request and its platform. Raises FilesetError."""
Archive = Callable[[FilesetPlatformItem, str, float, Callable[[], None]], ArchiveStrategyResult]
"""Archives an item by the strategy with that name, unless it is archived already. It works until
that time of the monotonic clock. It calls the given function now and then, which raises
FilesetError to end it."""

_OTHERWISE = frozenset({"file-404", "file-forbidden", "over-limit-stream", "bundle-missing-member"})
"""Statuses of a file that can mean that the dataset has changed; so can each mismatch."""


def version_order(platform: str, version: str | None, index: int | None = None) -> str | None:
    """Return the order of a version, or None if it is unknown.

    `index` is the platform's own count of versions. Otherwise the numbers in `version` are used,
    each with at most 12 digits: of a dotted version such as Dataverse's 4.1, or of a record's id.
    """
    if index is not None:
        return _order_text(_INDEX, str(index))
    if platform in _NUMBERED:
        return _order_text(_NUMBERS, version or "")
    if platform in _ASCENDING and "." not in (version or ""):
        return _order_text(_RECORD_ID, version or "")
    return None


def _order_text(kind: str, dotted: str) -> str | None:
    if not _DOTTED.fullmatch(dotted):
        return None
    numbers = [number.lstrip("0") for number in dotted.split(".")]
    if any(len(number) > _WIDTH for number in numbers):
        return None
    return f"{kind}:" + ".".join(number.zfill(_WIDTH) for number in numbers)


@dataclass(slots=True)
class _Course:
    """State of one request."""

    request: IngestRequest
    until: float
    resource: DatasetResource | None = None
    platform: str | None = None
    item: FilesetPlatformItem | None = None
    choice: StrategyChoice | None = None
    archived: ArchiveStrategyResult | None = None


@dataclass(frozen=True, slots=True)
class Ingest:
    """Carries out requests. Safe to use from threads.

    `api` returns the client for platforms, which sends nothing after that time of the monotonic
    clock. A request may take `seconds`; all end at `until` (of that clock), whenever they began.
    Another thread sets `stop` to end all requests, which are then `cancelled`. `clock` dates the
    outcomes.
    """

    detect: Detect
    api: Callable[[float], Api]
    archive: Archive
    settings: Configuration
    clock: Callable[[], datetime]
    seconds: float
    stop: threading.Event = field(default_factory=threading.Event)
    monotonic: Callable[[], float] = time.monotonic
    until: float = math.inf

    def process(self, request: IngestRequest, *, dry: bool = False) -> IngestOutcome:
        """Carry out a request and return its outcome; it raises no Exception.

        A `dry` request ends before files would be archived, as `pending`.
        """
        course = _Course(request, min(self.monotonic() + self.seconds, self.until))
        try:
            ended = self._finish(course, dry)
        except FilesetError as error:
            ended = self._fail(course, error)
        except DamagedStore as error:
            ended = ("error-store-verify", str(error), "")
        except StoreError as error:
            ended = ("error-store-upload", str(error), "")
        except Exception as error:  # noqa: BLE001 - whatever befalls a request, it has a result
            line = traceback.format_exception_only(error)[-1].strip()
            frames = traceback.extract_tb(error.__traceback__)
            at = f" ({frames[-1].name}, line {frames[-1].lineno})" if frames else ""
            ended = ("internal-error", line + at, "")
        name, detail, code = ended
        choice, archived, item = course.choice, course.archived, course.item
        files = archived.manifest if archived else ()
        if item is not None:
            order = version_order(item.platform_name, item.version, item.index)
            item = replace(item, order=order, sent=())
        return IngestOutcome(
            request=request,
            status=name,
            at=f"{self.clock():%Y%m%d%H%M%S}",
            detail=detail,
            code=code,
            resource=course.resource,
            item=item,
            archived=archived,
            incomplete=any(file.status and status.of(file.status).retryable for file in files),
            strategy=choice.strategy if choice else None,
            reason=choice.reason if choice else "",
            platform=course.platform,
        )

    def _finish(self, course: _Course, dry: bool) -> tuple[str, str, str]:
        """Carry out the request; return its status, detail and code."""
        if course.request.ingest_type != DATASET:
            raise FilesetError(
                "not-implemented", f"ingest_type {course.request.ingest_type}: expected {DATASET}"
            )

        check = partial(self._check, course.until)
        check()
        api = self.api(course.until)
        course.resource, helper = self.detect(course.request, api)
        course.platform = helper.facts.name
        item = helper.process_request(course.resource, api)
        course.item = item = replace(item, sent=tuple(api.heard))
        if item.platform_status != "success":
            raise FilesetError(item.platform_status, item.detail)
        course.item = item = apply_limits(item, self.settings)
        course.choice = choose(
            item.files, item.platform_name, self.settings, bundle_url=item.web_bundle_url
        )
        if course.choice.strategy.startswith(f"{ARCHIVEORG}-"):
            name = keys.item_name(item, self.settings["fileset.strategy"])
            course.item = item = replace(item, archiveorg_item_name=name)
        check()
        if dry:
            return "pending", "dry run: no file was fetched", ""
        try:
            course.archived = archived = self._archive(course, item, check)
        except FilesetError as error:
            if not (_may_be_changed(error.status) and self._is_changed(course, helper, api)):
                raise
            raise FilesetError(
                "changed-during-ingest", str(error), manifest=error.manifest
            ) from error
        failed = {file.status for file in archived.manifest} & status.FAIL_ALONE
        asks = _may_be_changed(archived.status) or failed
        if asks and self._is_changed(course, helper, api):
            detail = f"{archived.status}: {archived.detail or ', '.join(sorted(map(str, failed)))}"
            return "changed-during-ingest", detail.removesuffix(": "), ""
        return archived.status, archived.detail or item.detail, ""

    def _archive(
        self, course: _Course, item: FilesetPlatformItem, check: Callable[[], None]
    ) -> ArchiveStrategyResult:
        """Archive the item's files, unless they are archived already."""
        assert course.choice is not None
        archived = self.archive(item, course.choice.strategy, course.until, check)
        states = {file.path: file.status or "" for file in archived.manifest}
        for file in item.files if status.of(archived.status).hit else ():
            state = states.get(file.path, "")
            # Success without a file that the platform gives would be a fault of a strategy.
            if state not in status.FAIL_ALONE and not status.of(state).hit:
                raise AssertionError(f"{archived.ingest_strategy} did not store {file.path}")
        # It stays in the item of its first result, whatever names are configured now.
        name = archived.archiveorg_item_name or item.archiveorg_item_name
        course.item = replace(item, archiveorg_item_name=name)
        return archived

    def _fail(self, course: _Course, error: FilesetError) -> tuple[str, str, str]:
        """Copy the item and the manifest of an error; return its status, detail and code."""
        course.item = course.item or error.item
        if error.manifest and course.choice is not None:
            course.archived = ArchiveStrategyResult(
                ingest_strategy=course.choice.strategy,
                status=error.status,
                manifest=error.manifest,
                detail=error.detail,
            )
        elif error.manifest and course.item is not None:
            course.item = replace(course.item, manifest=error.manifest)
        return error.status, error.detail, error.code

    def _check(self, until: float) -> None:
        if self.stop.is_set():
            raise FilesetError("cancelled", "the run was stopped")
        if self.monotonic() >= until:
            is_run = until == self.until
            late = "the time of the run is over" if is_run else f"more than {self.seconds:g} s"
            raise FilesetError("deadline-exceeded", late)

    def _is_changed(self, course: _Course, helper: FilesetPlatformHelper, api: Api) -> bool:
        """Return whether the platform now lists other files than before."""
        resource = course.resource
        assert resource is not None
        assert course.item is not None
        try:
            if resource.body is not None:  # the page itself may list the files
                resource, helper = self.detect(course.request, api)
            now = helper.process_request(resource, api)
        except FilesetError:
            return False  # the failure already found stands
        return _facts(now) != _facts(course.item)


def _may_be_changed(name: str) -> bool:
    return name in _OTHERWISE or (name.startswith("mismatch-") and name != "mismatch-existing")


def _facts(item: FilesetPlatformItem) -> tuple[object, ...]:
    files = {
        (file.path, file.size, file.md5, file.sha1, file.sha256, file.sha512, file.status)
        for file in item.manifest or ()
    }
    return item.platform_status, item.version, files
