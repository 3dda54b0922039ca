"""`sheaf gather`."""

import argparse
import threading
from dataclasses import replace

from builder.arguments import declare
from builder.errors import UsageError
from builder.http.addresses import PublicAddresses, networks
from builder.http.client import HttpClient, check_contact, user_agent
from builder.http.errors import OUTCOMES
from builder.http.politeness import HostQueue
from builder.http.settings import http_settings
from builder.obi.run import ObiRuntime, history
from builder.progress import ProgressBar
from builder.sources.fulltexts.choice import DAY, FileChoice, GatherRules, OwnLimits
from builder.sources.fulltexts.fetch_file import FileFetcher
from builder.sources.fulltexts.gather_report import GatherReport
from builder.sources.fulltexts.hold import Hold, hold_store
from builder.sources.fulltexts.session import GatherJob, GatherSession
from builder.store.context import Context
from builder.text import tally
from functions.config.configuration import Configuration

_ARCHIVE = "repec:"
_WILD = frozenset("*?[")
_LONG = 60  # seconds of an estimate that is reported
_SHOWN = 10  # hosts of a plan


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "--again": "fetch all files now, including those that are not due",
            "--only WHICH": "only the files of an archive or series (RePEc:aaa, "
            "RePEc:aaa:ssssss), or URLs that match a pattern (https://example.org/*)",
            "--plan": "fetch nothing: report what is due, and how long it will take, by host",
            "--limit N": "fetch at most N files",
            "--strict": "exit with 1 if there are failures",
        },
    )


def run(context: Context) -> int:
    """Fetch the full texts that RePEc templates name.

    Only files that are due are fetched. A repeated run continues.
    """
    arguments, settings = context.arguments, context.configuration
    if arguments.limit is not None and arguments.limit < 1:
        raise UsageError(f"--limit {arguments.limit}: expected a number from 1")
    job = _read_job(arguments, settings)
    check_contact(settings)
    store = context.store
    if not history(store):
        raise UsageError(f"{store.address} has no templates: ingest some with `sheaf ingest`")
    with hold_store(context.scratch(), store.address) as hold:
        runtime = ObiRuntime(context.now, context.sleep, context.say)
        fetcher, own = fetcher_of(settings, hold)
        choice = replace(job.choice, lifted=own.lift, rules=own.rules)
        session = GatherSession(store, hold, runtime, fetcher, replace(job, choice=choice))
        due = session.due()
        if arguments.plan:
            context.result(plan_text(session.report), plan_json(session.report))
            return 0
        with ProgressBar("", due, " files") as bar:
            session.advance = bar
            report = session.gather()
    if session.interrupted is not None:
        context.say(text(report))
        raise session.interrupted
    context.result(text(report), report_json(report))
    return 1 if arguments.strict and report.failures else 0


def fetcher_of(settings: Configuration, hold: Hold) -> tuple[FileFetcher, OwnLimits]:
    """Return a file fetcher with the limits of the configuration, and its own limits."""
    stop = threading.Event()
    http = http_settings(settings, "gather")
    guard = PublicAddresses(frozenset(http.ports), networks(http.allow_networks))
    client = HttpClient(
        agent=user_agent(settings),
        addresses=guard,
        hosts=HostQueue(http.policy(), stop),
        stop=stop,
    )
    limits = http.limits()
    rules = GatherRules.parse(settings["gather.rules"])
    fetcher = FileFetcher(
        client=client, limits=limits, scratch=hold.journal.files, obey=http.robots, rules=rules
    )
    return fetcher, OwnLimits(guard, limits, http.robots, rules)


def _read_job(arguments: argparse.Namespace, settings: Configuration) -> GatherJob:
    only: str | None = arguments.only
    handle = pattern = None
    if only is not None and only.lower().startswith(_ARCHIVE):
        handle = "RePEc:" + only[len(_ARCHIVE) :].strip(":").lower()
    elif only is not None and ("://" in only or _WILD & set(only)):
        pattern = only
    elif only is not None:
        raise UsageError(
            f"--only {only}: expected RePEc:aaa, RePEc:aaa:ssssss, or a pattern of URLs"
        )
    choice = FileChoice(
        interval=settings["gather.interval_days"] * DAY,
        retry=settings["gather.retry_days"] * DAY,
        again=arguments.again,
        handle=handle,
        pattern=pattern,
    )
    return GatherJob(
        choice,
        only or "all templates",
        arguments.limit,
        seconds=settings["gather.batch"]["minutes"] * 60,
        files=settings["gather.batch"]["files"],
        threads=http_settings(settings, "gather").concurrent,
        megabytes=settings["publish.memory"],
    )


def text(report: GatherReport) -> str:
    """Return the report as text."""
    counts = report.counts
    if not report.runs:
        lines = ["nothing is due" if not report.left else "nothing was fetched"]
    else:
        lines = [
            f"{tally(counts['appearances'], 'new file')}, {counts['reappearances']:,} reappeared, "
            f"{counts['changes']:,} changed, {counts['seen']:,} unchanged, "
            f"{counts['deletions']:,} lost; {report.bytes / 1e6:,.1f} MB in "
            f"{tally(len(report.runs), 'run')}; {tally(counts['redirects'], 'redirect')}"
        ]
    if html := counts["soft_404"]:
        lines.append(f"{tally(html, 'file')} stored as HTML, in place of a PDF: flag soft-404")
    if report.failures:
        lines.append(f"{tally(report.failures.total(), 'URL')} could not be fetched:")
        lines += [f"  {n:,} {c}: {OUTCOMES[c].meaning}" for c, n in report.failures.most_common()]
    if report.left:
        lines.append(
            f"{tally(report.left, 'file is', 'files are')} still due, of "
            f"{tally(report.left_hosts, 'host')}: run the command again to continue"
        )
        lines += _slowest(report)
    if report.put_off:
        lines.append(
            f"{tally(report.put_off, 'file')} failed before and "
            f"{'is' if report.put_off == 1 else 'are'} postponed: --again tries them now"
        )
    return "\n".join(lines)


def _slowest(report: GatherReport) -> list[str]:
    """Return a line about the host that takes longest, if it takes more than a minute."""
    host = next(iter(report.hosts), None)
    if host is None or host.seconds < _LONG:
        return []
    return [
        f"all will have been requested in about {_duration(host.seconds)}: "
        f"{tally(host.work.due, 'file')} of {host.work.host}"
    ]


def _duration(seconds: float) -> str:
    for length, unit in ((DAY, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:,.0f} seconds"


def plan_text(report: GatherReport) -> str:
    """Return what is due as text, by host."""
    due = [host for host in report.hosts if host.work.due]
    lines = [
        f"{tally(report.planned, 'file is', 'files are')} due, of {tally(len(due), 'host')}; "
        f"{report.excluded:,} excluded by gather.rules",
        *_slowest(report),
    ]
    lines += [
        f"  {host.work.due:,} of {host.work.host}: {_duration(host.seconds)}"
        for host in due[:_SHOWN]
    ]
    return "\n".join([*lines, *(["  ..."] if len(due) > _SHOWN else [])])


def plan_json(report: GatherReport) -> dict[str, object]:
    """Return what is due as a JSON document."""
    names = ("host", "files", "due", "put_off", "excluded")
    hosts = [
        {**{name: getattr(host.work, name) for name in names}, "seconds": round(host.seconds)}
        for host in report.hosts
    ]
    return {"due": report.planned, "seconds": _seconds(report), "hosts": hosts}


def _seconds(report: GatherReport) -> int:
    return max((round(host.seconds) for host in report.hosts), default=0)


def report_json(report: GatherReport) -> dict[str, object]:
    """Return the report as a JSON document."""
    kinds = "appearances reappearances changes deletions seen redirects soft_404"
    return {
        "runs": report.runs,
        **{name: report.counts[name] for name in kinds.split()},
        "failures": dict(sorted(report.failures.items())),
        "bytes": report.bytes,
        "left": report.left,
        "put_off": report.put_off,
        "left_seconds": _seconds(report),
    }
