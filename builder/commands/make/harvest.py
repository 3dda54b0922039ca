"""`sheaf harvest`."""

import argparse
import gc
import math
import re
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

from builder.arguments import declare
from builder.errors import UsageError, explaining
from builder.http.addresses import AnyAddresses
from builder.http.client import HttpClient, agent_of
from builder.http.errors import Deferred
from builder.http.politeness import HostQueue
from builder.http.secrets import clean_text
from builder.http.settings import HttpSettings, Proxies, http_settings, proxies
from builder.http.url import origin_of
from builder.progress import RecordBar
from builder.sources.harvest import batch, window
from builder.sources.harvest.batch import HarvestThreads
from builder.sources.harvest.client import OaiClient, OaiSettings
from builder.sources.harvest.errors import Unanswered
from builder.sources.harvest.folder import FORMS
from builder.sources.harvest.night import Deadline
from builder.sources.harvest.page import ListPage
from builder.sources.harvest.repository import find_repository, list_addresses
from builder.sources.harvest.run import HarvestJob, HarvestResult, HarvestSession
from builder.sources.harvest.state import COMPLETE
from builder.sources.harvest.window import HarvestDates
from builder.store.context import Context
from builder.text import visible
from functions.snapshot.errors import SheafError
from functions.snapshot.instant import from_datestamp

_DAY = 86_400.0
_HEADER = re.compile(
    r"(?:(https?://[^\s/]+)/?[ \t]+)?([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e]*)"
)


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    declare(
        parser,
        {
            "url URL...": "base URLs of repositories, or names of configured ones",
            "dir DIR": "folder for the harvested records",
            "--prefix PREFIX...": "metadataPrefix; may be given more than once (default: oai_dc)",
            "--set SPEC...": "setSpec; may be given more than once",
            "--from DATE as since": "from this datestamp, such as 2026-11-22 or "
            "2026-11-22T10:00:00Z (default: the last run, less an overlap)",
            "--until DATE": "up to this datestamp (default: all)",
            "--full": "harvest everything again, not only newer records",
            "--remove-missing": "with --full: end the records of earlier runs that are no longer "
            "listed as deleted, unless more than 10 and more than a fifth of all are missing",
            "--accept-loss": "with --remove-missing: however many are missing",
            "--format": "rows as Parquet, rows as JSON lines, or raw record elements as XML "
            "(default: the format of an existing harvest, else parquet)",
            "--overlap S": "seconds by which a run overlaps the last one (default: an hour or "
            "more, as the repository's delays ask for)",
            "--every S": "seconds between commits of harvested records (default: 5, in long runs "
            "a twentieth of their time)",
            "--header HEADER...": "header to send, such as an API key; it is not stored. With "
            "repositories of several origins, name the one that it is for: 'https://a.example "
            "X-Key: VALUE'",
            "--contact MAIL": "e-mail address to send in User-Agent",
        },
        format={"action": "store", "choices": FORMS},
        overlap={"type": _seconds},
        every={"type": _seconds, "default": 5.0},
        header={"type": parse_header, "metavar": "'[ORIGIN] NAME: VALUE'"},
    )


def run(context: Context) -> int:
    """Harvest OAI-PMH repositories into a folder.

    A repeated run continues or updates a harvest. After an interruption nothing is lost, and
    nothing is stored twice. `sheaf ingest DIR` adds the harvested records to your own repository.
    """
    arguments = context.arguments
    named = list_addresses(context.defaults)
    jobs = list(dict.fromkeys(_list_jobs(arguments, named)))
    dates = _window(arguments)
    headers = _bind_headers(arguments.header, {origin_of(job.base_url) for job in jobs})
    check_proxies(context, jobs)
    home = Path(arguments.dir)
    with explaining(home, "created"):
        try:
            home.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"{home} is not a folder") from error
    own = {job: headers[origin_of(job.base_url)] for job in jobs}
    options = {
        job: ListOptions(dates, own[job], arguments.every, arguments.overlap) for job in jobs
    }
    agent = agent_of(f"(mailto:{arguments.contact})" if arguments.contact else "")
    outcomes: list[HarvestResult] = []
    errors: list[SheafError] = []
    for _, outcome in harvest_lists(context, home, options, agent):
        if isinstance(outcome, HarvestResult):
            outcomes.append(outcome)
        else:
            errors.append(outcome)
    for fault in errors:
        context.say(f"sheaf: {clean_text(str(fault))}")
    outcomes.sort(key=lambda outcome: jobs.index(outcome.job))
    if outcomes or context.arguments.json:
        context.result(
            "\n".join(map(batch.report_text, outcomes)), list(map(batch.report_json, outcomes))
        )
    if any(isinstance(fault, UsageError) for fault in errors):
        return 2
    return 1 if errors or any(outcome.status != COMPLETE for outcome in outcomes) else 0


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Run the garbage collector rarely: pages have many objects without cycles.

    It would otherwise take a fifth of the time.
    """
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """How a list is harvested: its dates, headers, and seconds between commits and of overlap.

    `pace` is the seconds between two requests, if more than configured. `minutes` limit it.
    """

    dates: HarvestDates
    headers: Mapping[str, str]
    every: float = 5.0
    overlap: float | None = None
    pace: float = 0.0
    minutes: float = math.inf


def check_proxies(context: Context, jobs: Iterable[HarvestJob]) -> None:
    """Raise UsageError if a proxy in the environment cannot be used."""
    for job in jobs:
        proxies(context.environment).of_url(job.base_url)


def harvest_lists(
    context: Context, home: Path, options: Mapping[HarvestJob, ListOptions], agent: str
) -> Iterator[tuple[HarvestJob, HarvestResult | SheafError]]:
    """Harvest lists side by side, and yield each with its result or error as they end."""
    http, stop = http_settings(context.defaults, "harvest"), threading.Event()
    behind = proxies(context.environment)
    with RecordBar() as bar, _rare_collections():

        def work(job: HarvestJob) -> HarvestResult:
            own, limit = options[job], Deadline(stop, options[job].minutes * 60)
            client = open_client(http, agent, own.pace, limit, behind)
            settings = OaiSettings(
                limits=http.limits(),
                say=lambda text: bar.print(visible(clean_text(text))),
                retry=http.retry_policy(),
                headers=own.headers,
            )

            def ask(arguments: Mapping[str, str]) -> ListPage:
                try:
                    return oai.ask(arguments)
                except Deferred:
                    if stop.is_set():
                        raise
                    text = f"not finished within {own.minutes} minutes; the next run continues"
                    raise Unanswered(text, later=True) from None

            advance = partial(bar.add, job.named)
            run = (context.now, time.monotonic, settings.say, advance, own.every, own.overlap)
            with closing(OaiClient(job.base_url, client, settings)) as oai:
                return HarvestSession(job, home, own.dates, ask, *run).carry_out()

        crew = HarvestThreads(work, http.host_concurrent, stop)
        with closing(crew.outcomes([*options])) as outcomes:
            yield from outcomes


def open_client(
    http: HttpSettings, agent: str, pace: float, stop: threading.Event, behind: Proxies
) -> HttpClient:
    """Return a client with at least `pace` seconds between requests, which retry by themselves."""
    interval = max(http.host_seconds, pace)
    hosts = HostQueue(replace(http.policy(), interval=interval, rest=0.0, forgives=0.0), stop)
    return HttpClient(agent=agent, addresses=AnyAddresses(), hosts=hosts, stop=stop, proxies=behind)


def _bind_headers(
    headers: Sequence[tuple[str, str, str]], origins: Collection[str]
) -> Mapping[str, Mapping[str, str]]:
    """Return the headers of each origin. Raises UsageError if it is not clear whose they are."""
    bound: dict[str, dict[str, str]] = {origin: {} for origin in origins}
    for origin, name, value in headers:
        if not origin and len(origins) > 1:
            raise UsageError(
                f"--header {name}: the URLs have several origins, so name the one that it is for: "
                f"--header 'https://a.example {name}: VALUE'"
            )
        mine = origin or next(iter(origins))
        if mine not in bound:
            raise UsageError(f"--header {name}: no URL has the origin {mine}")
        bound[mine][name] = value
    return bound


def _list_jobs(
    arguments: argparse.Namespace, named: Mapping[str, Sequence[str]]
) -> Iterator[HarvestJob]:
    """Yield a harvest for each repository, prefix and set. Raises UsageError.

    `named` is of list_addresses: a repository's name stands for its present address.
    """
    urls = [normal_url(named[url][0] if url in named else url) for url in arguments.url]
    prefixes, sets = arguments.prefix or ["oai_dc"], arguments.set or [None]
    for url, prefix, set_ in product(urls, prefixes, sets):
        repository = find_repository(named, url)
        yield HarvestJob(url, prefix, set_, arguments.format, repository)


def normal_url(text: str) -> str:
    """Return a base URL in normal form. Raises UsageError."""
    try:
        parts = urlsplit(text)
        is_web = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        is_web = False
    if not is_web or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(f"{text!r} is not the http or https URL of a repository")
    if parts.username is not None:
        raise UsageError("the URL has a password, which would be stored: use --header")
    query = "&".join(q for q in parts.query.split("&") if q and not q.startswith("verb="))
    return parts._replace(netloc=parts.netloc.lower(), query=query, fragment="").geturl()


def _window(arguments: argparse.Namespace) -> HarvestDates:
    for name, text in (("--from", arguments.since), ("--until", arguments.until)):
        if text is not None and from_datestamp(text) is None:
            raise UsageError(f"{name} {text}: expected 2026-11-22 or 2026-11-22T10:00:00Z")
    since, until, full = arguments.since, arguments.until, arguments.full
    removing, accepting = arguments.remove_missing, arguments.accept_loss
    if removing and (not full or since or until):
        raise UsageError("--remove-missing needs --full, and no dates: other lists lack records")
    if accepting and not removing:
        raise UsageError("--accept-loss is an addition to --remove-missing")
    if since and until and window.is_before(until, since) and until[:10] != since[:10]:
        raise UsageError(f"--until {until} is before --from {since}")
    return HarvestDates(since, until, full, removing, accepting)


def parse_header(text: str) -> tuple[str, str, str]:
    """Return the origin of a header, "" without one, its name and its value.

    Raises ArgumentTypeError.
    """
    match = _HEADER.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text.partition(':')[0]!r}: expected 'Name: value'")
    return (match[1] or "").lower(), match[2], match[3].strip()


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 10 * _DAY * 365:
        raise argparse.ArgumentTypeError(f"{text!r}: expected seconds")
    return seconds
