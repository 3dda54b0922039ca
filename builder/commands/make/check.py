"""`sheaf check`."""

import argparse
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from builder.arguments import declare
from builder.check.asker import AskBudget, RepositoryAsker, SavedAnswers
from builder.check.checks import FAILED, CheckCard, load_checks
from builder.check.report import make_report
from builder.check.visit import VisitOptions, visit
from builder.commands.make.harvest import normal_url, parse_header
from builder.http.addresses import AnyAddresses
from builder.http.client import HttpClient, agent_of
from builder.http.politeness import HostQueue
from builder.http.secrets import clean_document
from builder.http.settings import http_settings, proxies
from builder.store.context import Context

_SECONDS = 120.0
"""Time of a visit."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "url URL": "base URL of a repository, or a folder of saved answers",
            "--prefix PREFIX": "metadataPrefix of the records (default: oai_dc)",
            "--set SPEC": "check the records of this set only",
            "--sample N": "records to examine, evenly spread (default: 200)",
            "--seconds N": "time of the visit (default: 120)",
            "--header HEADER...": "header to send, such as an API key; it is not stored",
            "--contact MAIL": "e-mail address to send in User-Agent",
        },
        prefix={"default": "oai_dc"},
        sample={"default": 200},
        seconds={"default": int(_SECONDS)},
        header={"type": parse_header, "metavar": "'NAME: VALUE'"},
    )


def run(context: Context) -> int:
    """Check any OAI-PMH repository: the protocol, its lists and its records.

    A visit takes two minutes at most. What it did not see is reported as not checked. Exit status 1
    means that something breaks harvesters or the specification.
    """
    arguments = context.arguments
    options = VisitOptions(
        prefix=arguments.prefix, set=arguments.set, sample=max(1, arguments.sample)
    )
    card, checks = CheckCard(), load_checks()
    with closing(_asker(context)) as asker:
        result = visit(asker, card, context.now, options)
    names = [name for _, name, _ in arguments.header]
    document = clean_document(make_report(result, card, checks, (), names))
    context.result(_text(document), document)
    verdict = document["summary"]["verdict"]
    if not any(exchange.status for exchange in result.exchanges):
        return 2
    return 1 if verdict in ("breaks", "specification") else 0


def _asker(context: Context) -> RepositoryAsker | SavedAnswers:
    """Return what answers the visit: a folder, or the repository. Raises UsageError."""
    arguments = context.arguments
    if (folder := Path(arguments.url)).is_dir():
        return SavedAnswers(folder)
    url = normal_url(arguments.url)
    own = proxies(context.environment)
    own.of_url(url)  # raises UsageError for a proxy that cannot be used
    http = http_settings(context.defaults, "check")
    policy = replace(http.policy(), rest=0.0, forgives=0.0)
    client = HttpClient(
        agent=agent_of(f"(mailto:{arguments.contact})" if arguments.contact else ""),
        addresses=AnyAddresses(),
        hosts=HostQueue(policy, stop := threading.Event()),
        stop=stop,
        proxies=own,
    )
    headers = {name: value for _, name, value in arguments.header}
    budget = AskBudget(time.monotonic() + arguments.seconds)
    return RepositoryAsker(url, client, http.limits(), headers, budget)


def _text(document: Mapping[str, Any]) -> str:
    lines = [f"{document['url']}: {document['summary']['verdict']}"]
    for row in document["checks"]:
        if row["state"] == FAILED:
            lines.append(f"{row['number']} {row['severity']}: {row['title']} ({row['count']:,})")
            lines += [f"    {noted['where']}: {noted['seen']}" for noted in row["findings"][:3]]
    return "\n".join(lines)
