"""The function of AWS Lambda that gives content: its handler is functions.content.function.handler.

It is made as functions.oai.function's is, of the same variables and the same sheaf.toml.
"""

import os

from functions.content import assembly
from functions.oai import gateway, instance
from functions.oai.instance import Answering, Opened


def content(opened: Opened) -> Answering:
    """Return what answers with archived bytes."""
    settings = opened.settings
    return assembly.application(
        opened.repository,
        settings["store.uri"],
        opened.root,
        settings,
        opened.environment,
        instance.now,
        opened.log,
        largest=gateway.LARGEST,
    )


handler = instance.Instance(os.environ, instance.root(os.environ), instance.write, content)
