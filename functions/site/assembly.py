"""Builds the application with its pages, for Lambda and for local servers."""

from collections.abc import Callable, Sequence
from functools import partial

from functions.content.calendar import CaptureCalendar
from functions.content.search import CaptureSearch
from functions.http import aws
from functions.http.lambda_instance import InstanceParts, now
from functions.http.service import Service
from functions.oai.answer import Answer
from functions.oai.application import Application, OaiParts, PageService, render_document
from functions.reading.duck_repository import DuckRepository
from functions.search.search import WordSearch
from functions.site.page import PageParts
from functions.site.site import WebSite
from functions.snapshot.dumps import DumpIndex, read_index
from functions.snapshot.fixity import CheckReport, read_reports

_RECORDS, _LARGEST = 50, 180_000
"""Records, and bytes of the document, in an answer that a page shows."""


def site_over(repository: DuckRepository) -> Callable[[OaiParts], PageService]:
    """Return what makes the pages of an application over this repository."""
    search = CaptureSearch(repository.catalogue, repository.files)
    calendar = CaptureCalendar(repository.catalogue, repository.files)
    words = WordSearch(repository.catalogue, repository.files)
    dumps = partial(read_index, repository.catalogue.reader)
    checks = partial(read_reports, repository.catalogue.reader)
    return lambda shared: make_site(shared, search, calendar, words, dumps, checks)


def make_site(
    shared: OaiParts,
    search: CaptureSearch | None = None,
    calendar: CaptureCalendar | None = None,
    words: WordSearch | None = None,
    dumps: Callable[[], DumpIndex | None] | None = None,
    checks: Callable[[], Sequence[CheckReport]] | None = None,
) -> PageService:
    """Return the pages of an application; without what searches, some are missing."""
    renderer = shared.renderer

    def answer(pairs: Sequence[tuple[str, str]], url: str) -> tuple[Answer, bytes]:
        return render_document(shared.provider, renderer, pairs, url, _RECORDS, largest=_LARGEST)

    parts = PageParts(
        repository=shared.repository,
        configuration=shared.configuration,
        present=shared.present,
        base_url=shared.provider.base_url,
        places=renderer.places,
        formats=shared.formats,
        copies=renderer.copies,
        write=renderer.page,
        render=renderer.record,
        answer=answer,
        search=search,
        calendar=calendar,
        words=words.find if words else None,
        dumps=dumps,
        checks=checks,
    )
    return WebSite(parts)


def of_lambda(opened: InstanceParts) -> Service:
    """Return the application as Lambda calls it."""
    return Application(
        opened.repository,
        opened.settings,
        now,
        opened.log,
        largest=aws.LARGEST,
        guarded=True,
        pages=site_over(opened.repository),
    )
