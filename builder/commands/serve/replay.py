"""`sheaf replay install`."""

import argparse
from pathlib import Path

from builder.arguments import declare
from builder.serve.replay_package import install, read_package
from builder.store.context import Context


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(parser, {"file FILE": "the tarball that `npm pack replaywebpage` writes"})


def run(context: Context) -> int:
    """Install ReplayWeb.page from FILE, so that archived pages run their scripts.

    Its service worker is written into the store, in place of an earlier one. It is free software
    of Webrecorder under the AGPL, and not part of Sheaf. Archived scripts run where
    `content.replay_address` and `repository.base_url` name different hosts.
    """
    package = read_package(Path(context.arguments.file))
    install(context.published_store(), package)
    document = {"version": package.version, "licence": package.licence}
    context.result("installed ReplayWeb.page {version} ({licence})".format(**document), document)
    return 0
