"""Assembly: what answers OAI-PMH, put together of a store that an instance has opened."""

from functions.http import gateway
from functions.oai.handler import Application
from functions.oai.lambda_instance import Answering, InstanceParts, now


def application(opened: InstanceParts) -> Answering:
    """Return what answers, as Lambda takes it."""
    return Application(
        opened.repository, opened.settings, now, opened.log, largest=gateway.LARGEST, guarded=True
    )
