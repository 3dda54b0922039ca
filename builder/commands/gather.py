"""`sheaf gather`."""

import argparse
import threading
from dataclasses import replace
from functools import partial

from builder.context import Context
from builder.display import tally
from builder.errors import UsageError
from builder.gather import pdf_digest
from builder.gather.hold import Hold, held
from builder.gather.refusal import lifted
from builder.gather.session import Account, Order, Session
from builder.gather.state import DAY, Choice
from builder.http import user_agent
from builder.http.addresses import Guard, networks
from builder.http.fetch import Means
from builder.http.outcomes import OUTCOMES
from builder.http.politeness import Hosts
from builder.http.settings import http_settings
from builder.obi.run import Outside, history
from builder.progress import Files
from functions.config.configuration import Configuration

_ARCHIVE = "repec:"
_WILD = frozenset("*?[")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--again", action="store_true", help="fetch all files now, also those that are not yet due"
    )
    parser.add_argument(
        "--only", metavar="WHICH",
        help="the files of an archive or series (RePEc:aaa, RePEc:aaa:ssssss), or the URLs that "
        "a pattern matches (https://example.org/*)",
    )  # fmt: skip
    parser.add_argument("--limit", type=int, metavar="N", help="fetch N files at most")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there are failures")


def run(context: Context) -> int:
    """Fetch the files behind the URLs of templates, where they are due.

    Run again, it goes on.
    """
    arguments, settings = context.arguments, context.configuration
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError(f"--limit {arguments.limit}: expected a number from 1")
    order = _order(arguments, settings)
    user_agent.check(settings)
    if settings["gather.pdf_text"]:
        pdf_digest.check()
    store = context.store
    if not history(store):
        raise UsageError(f"{store.address} has no templates: give `sheaf ingest` a tree of them")
    with held(context.scratch(), store.address) as hold:
        outside = Outside(context.now, context.sleep, context.say)
        ways = means(settings, hold)
        choice = replace(order.choice, lifted=partial(lifted, ways))
        session = Session(store, hold, outside, ways, replace(order, choice=choice))
        with Files(session.due()) as bar:
            session.advance = bar
            account = session.gather()
    if session.interrupted is not None:
        context.say(text(account))
        raise session.interrupted
    context.result(text(account), told(account))
    return 1 if arguments.strict and account.failures else 0


def means(settings: Configuration, hold: Hold) -> Means:
    """Return what fetching takes, as the configuration has it."""
    stop = threading.Event()
    http = http_settings(settings, "gather")
    return Means(
        agent=user_agent.agent(settings),
        guard=Guard(frozenset(http.ports), networks(http.allow_networks)),
        limits=http.limits(),
        hosts=Hosts(http.manners(), stop),
        scratch=hold.scratch,
        obey=http.robots,
        stop=stop,
    )


def _order(arguments: argparse.Namespace, settings: Configuration) -> Order:
    only: str | None = arguments.only
    handle = pattern = None
    if only is not None and only.lower().startswith(_ARCHIVE):
        handle = "RePEc:" + only[len(_ARCHIVE) :].strip(":").lower()
    elif only is not None and ("://" in only or _WILD & set(only)):
        pattern = only
    elif only is not None:
        raise UsageError(f"--only {only}: expected RePEc:aaa, RePEc:aaa:ssssss, or URLs' pattern")
    choice = Choice(
        interval=settings["gather.interval_days"] * DAY,
        retry=settings["gather.retry_days"] * DAY,
        again=arguments.again,
        handle=handle,
        pattern=pattern,
    )
    return Order(
        choice,
        only or "all templates",
        arguments.limit,
        seconds=settings["gather.batch"]["minutes"] * 60,
        files=settings["gather.batch"]["files"],
        threads=http_settings(settings, "gather").concurrent,
        megabytes=settings["publish.memory"],
        pdf_text=settings["gather.pdf_text"],
    )


def text(account: Account) -> str:
    """Return the account for people."""
    counts = account.counts
    if not account.runs:
        lines = ["nothing is due" if not account.left else "nothing was fetched"]
    else:
        lines = [
            f"{tally(counts['appearances'], 'new file')}, {counts['reappearances']:,} back again, "
            f"{counts['changes']:,} changed, {counts['seen']:,} as before, "
            f"{counts['deletions']:,} lost; {account.bytes / 1e6:,.1f} MB in "
            f"{tally(len(account.runs), 'run')}; {tally(counts['redirects'], 'redirect')}"
        ]
    if account.failures:
        lines.append(f"{tally(account.failures.total(), 'URL')} could not be had:")
        lines += [f"  {n:,} {c}: {OUTCOMES[c].meaning}" for c, n in account.failures.most_common()]
    if account.left:
        lines.append(
            f"{tally(account.left, 'file is', 'files are')} still due, of "
            f"{tally(account.left_hosts, 'host')}: run it again to go on"
        )
    if account.put_off:
        lines.append(
            f"{tally(account.put_off, 'file')} failed before and "
            f"{'is' if account.put_off == 1 else 'are'} put off: --again tries them now"
        )
    return "\n".join(lines)


def told(account: Account) -> dict[str, object]:
    """Return the account as --json prints it."""
    names = ("appearances", "reappearances", "changes", "deletions", "seen", "redirects")
    return {
        "runs": account.runs,
        **{name: account.counts[name] for name in names},
        "failures": dict(sorted(account.failures.items())),
        "bytes": account.bytes,
        "left": account.left,
        "put_off": account.put_off,
    }
