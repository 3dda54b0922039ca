"""Builds the application with its pages, for Lambda."""

from collections.abc import Callable

from functions.http import aws
from functions.http.lambda_instance import InstanceParts, now
from functions.http.service import Service
from functions.oai.application import Application, OaiParts, PageService
from functions.reading.duck_repository import DuckRepository


def site_over(repository: DuckRepository) -> Callable[[OaiParts], PageService]:
    """Return what makes the pages of an application over this repository."""

    def make(shared: OaiParts) -> PageService:
        from functions.site.site import make_site  # a cold start to a list has no time for it

        return make_site(shared, repository)

    return make


def of_lambda(opened: InstanceParts) -> Service:
    """Return the application as Lambda calls it."""
    return Application(
        opened.repository,
        opened.settings,
        now,
        opened.log,
        largest=aws.LARGEST,
        pages=site_over(opened.repository),
    )
