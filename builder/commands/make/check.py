"""`sheaf check`."""

import argparse
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from builder.arguments import declare
from builder.check.asker import AskBudget, Asker, RepositoryAsker, SavedAnswers
from builder.check.checks import CheckCard, load_checks
from builder.check.comparison import join, read_report
from builder.check.page import write_page
from builder.check.profiles import Profile, list_profiles, open_profiles
from builder.check.records import check_records
from builder.check.report import make_report, strike_out
from builder.check.text import write_text
from builder.check.visit import VisitOptions, visit
from builder.commands.make.harvest import normal_url, open_client, parse_header
from builder.errors import explaining
from builder.http.client import agent_of
from builder.http.secrets import clean_document
from builder.http.settings import http_settings, proxies
from builder.store.context import Context
from builder.store.durable import replace_durably


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "url URL": "base URL of a repository, or a folder of saved answers",
            "--prefix PREFIX": "metadataPrefix of the records (default: oai_dc)",
            "--set SPEC": "check the records of this set only",
            "--profile NAME...": f"rules for records: {', '.join(list_profiles())}",
            "--sample N": "records to examine, evenly spread (default: 200)",
            "--seconds N": "time of the visit (default: 120)",
            "--header HEADER...": "header to send, such as an API key; it is not stored",
            "--contact MAIL": "e-mail address to send in User-Agent",
            "--compare FILE": "the JSON of an earlier check: says what changed since, and finds "
            "what only two visits show",
            "--html FILE": "write the report as a page, too",
        },
        prefix={"default": "oai_dc"},
        sample={"default": 200},
        seconds={"default": 120},
        header={"type": parse_header, "metavar": "'NAME: VALUE'"},
    )


def run(context: Context) -> int:
    """Check any OAI-PMH repository: the protocol, its lists and its records.

    A visit takes two minutes at most. What it did not see is reported as not checked. Exit status 1
    means that something breaks harvesters or the specification.
    """
    arguments = context.arguments
    profiles = open_profiles(arguments.profile)
    previous = read_report(Path(arguments.compare)) if arguments.compare else None
    options = VisitOptions(
        prefix=arguments.prefix,
        set=arguments.set,
        sample=max(1, arguments.sample),
        namespaces=frozenset(name for profile in profiles for name in profile.namespaces),
        previous=previous,
    )
    headers = {name: value for _, name, value in arguments.header}
    asker: Asker
    if (folder := Path(arguments.url)).is_dir():
        asker = SavedAnswers(folder)
    else:
        agent = agent_of(f"(mailto:{arguments.contact})" if arguments.contact else "")
        asker = open_asker(context, arguments.url, headers, agent, arguments.seconds)
    document = judge(context, asker, options, headers, profiles)
    if arguments.html:
        with explaining(arguments.html, "written"):
            replace_durably(Path(arguments.html), write_page(document).encode())
    context.result(write_text(document), document)
    if not any(request["status"] for request in document["requests"]):
        return 2
    return int(document["summary"]["verdict"] in ("breaks", "specification"))


def judge(
    context: Context,
    asker: Asker,
    options: VisitOptions,
    headers: Mapping[str, str],
    profiles: Sequence[Profile] = (),
) -> dict[str, Any]:
    """Return the report of a visit, compared with the one before, and without values of headers.

    A Host is no secret: answers repeat it, and their addresses are judged. The asker is closed.
    """
    card, checks = CheckCard(), dict(load_checks())
    with closing(asker):
        result = visit(asker, card, context.now, options)
    check_records(result.sample, profiles, card, result.formats, result.identify)
    for profile in profiles:
        checks |= profile.checks()
    names = [profile.name for profile in profiles]
    document = clean_document(make_report(result, card, checks, names, headers))
    secrets = [value for name, value in headers.items() if name.lower() != "host"]
    document = strike_out(document, secrets)
    return document if options.previous is None else join(options.previous, document)


def open_asker(
    context: Context,
    url: str,
    headers: Mapping[str, str],
    agent: str,
    seconds: float,
    pace: float = 0.0,
) -> RepositoryAsker:
    """Return what asks a repository for so many seconds, at least `pace` seconds apart.

    Raises UsageError.
    """
    url = normal_url(url)
    own = proxies(context.environment)
    own.of_url(url)  # raises UsageError for a proxy that cannot be used
    http = http_settings(context.defaults, "check")
    client = open_client(http, agent, pace, threading.Event(), own)
    budget = AskBudget(time.monotonic() + seconds)
    return RepositoryAsker(url, client, http.limits(), headers, budget)
