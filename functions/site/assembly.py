"""Builds the application with its pages, for Lambda and for local servers."""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

from functions.content.search import CaptureSearch
from functions.http import aws
from functions.oai.application import Application, OaiParts, PageService
from functions.oai.lambda_instance import InstanceParts, now
from functions.oai.repository_duckdb.repository import DuckRepository
from functions.oai.service import Service
from functions.search.search import WordSearch
from functions.site.captures.calendar import CaptureCalendar
from functions.site.page import PageParts
from functions.site.site import WebSite
from functions.snapshot.dumps import read_index
from functions.snapshot.fixity import read_reports


def site_over(repository: DuckRepository) -> Callable[[OaiParts], PageService]:
    """Return what makes the pages of an application over this repository."""
    catalogue, files = repository.catalogue, repository.files
    return partial(
        make_site,
        search=CaptureSearch(catalogue, files),
        calendar=CaptureCalendar(catalogue, files),
        words=WordSearch(catalogue, files).find,
        dumps=partial(read_index, catalogue.reader),
        checks=partial(read_reports, catalogue.reader),
    )


def make_site(shared: OaiParts, **sources: Any) -> PageService:
    """Return the pages of an application; of the `sources` in PageParts, all may be missing."""
    own = {field.name: getattr(shared, field.name) for field in fields(shared)}
    return WebSite(PageParts(**own, **sources))


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
