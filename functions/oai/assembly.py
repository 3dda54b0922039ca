"""Wiring of the OAI-PMH application over an open store."""

from functions.http import gateway
from functions.oai.handler import Application
from functions.oai.lambda_instance import Answering, InstanceParts, now


def application(opened: InstanceParts) -> Answering:
    """Return the application as Lambda calls it."""
    return Application(
        opened.repository, opened.settings, now, opened.log, largest=gateway.LARGEST, guarded=True
    )
