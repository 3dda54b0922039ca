"""`sheaf update`."""

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from builder.commands.make import harvest, ingest, publish
from builder.commands.make.harvest import ListOptions
from builder.errors import UsageError
from builder.http.client import user_agent
from builder.intake.mirror import refuse_beside_replica
from builder.publish.report import report_document, report_text
from builder.sources.harvest import HARVEST, night
from builder.sources.harvest.folder import lock_folder
from builder.sources.harvest.mirror import read_replica
from builder.sources.harvest.night import WHOLE, Standing
from builder.sources.harvest.repository import find_repository, list_addresses, place_of
from builder.sources.harvest.run import HarvestJob, HarvestResult
from builder.sources.harvest.source import find_harvest_home
from builder.sources.harvest.window import HarvestDates
from builder.sources.source import Source, SourceReport
from builder.store.context import Context
from functions.snapshot import layout
from functions.snapshot.errors import ConfigurationError, SheafError

_CARDS = 10
"""Report cards that are renewed in a night, at most."""
_SECONDS = 30.0
"""Time of the visit for each."""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments; this command has none of its own."""


def run(context: Context) -> int:
    """Harvest the configured repositories, ingest what is whole, publish: one night.

    Your own records and ReDIF, as configured, are part of it. A repository that fails keeps what it
    had, and holds no other one back. After an interruption, the next run continues.
    """
    lists = {rule["name"]: _plan(context, rule) for rule in context.configuration["repositories"]}
    owners = {job: name for name, jobs in lists.items() for job in jobs}
    places = [place_of(next(iter(jobs)).base_url) for jobs in lists.values()]
    if twice := [place for place in places if places.count(place) > 1]:
        raise ConfigurationError(f"two of the repositories are one: {twice[0]}")
    harvest.check_proxies(context, owners)
    _check_sources(context, is_empty=not lists)
    home, agent = find_harvest_home(context), user_agent(context.configuration)
    with lock_folder(home):
        began, standings = context.now(), night.read_standings(home)
        options = {job: jobs[job] for jobs in lists.values() for job in jobs}
        ended: dict[str, list[HarvestResult | SheafError]] = {name: [] for name in lists}
        try:
            for job, outcome in harvest.harvest_lists(context, home, options, agent):
                name = owners[job]
                ended[name].append(outcome)
                if len(ended[name]) == len(lists[name]):
                    before = standings.get(name, Standing())
                    standings[name] = before.end_night(ended[name], began)
            _renew_cards(context, home, lists, standings, agent)
            texts, document = _ingest(context, standings)
        finally:
            night.write_standings(home, standings)
        rows = night.list_rows(home, lists, context.now())
        document["rows"] = rows
        try:
            built = publish.publish(_join_defaults(context, publish))
        except SheafError:
            context.result(night.make_table(rows), document)
            raise
    document["publish"] = report_document(built)
    context.result("\n".join([night.make_table(rows), *texts, report_text(built)]), document)
    return int(any(row["state"] != WHOLE for row in rows))


def _renew_cards(
    context: Context,
    home: Path,
    lists: Mapping[str, Mapping[HarvestJob, ListOptions]],
    standings: dict[str, Standing],
    agent: str,
) -> None:
    """Check the repositories whose report cards are the oldest, if they are due; a few a night."""
    now, rules = context.now(), context.configuration["repositories"]
    days = {rule["name"]: rule["check_days"] for rule in rules}
    due = [name for name in lists if standings[name].needs_check(now, days[name])]
    for name in sorted(due, key=lambda name: standings[name].checked)[:_CARDS]:
        from builder.check import shelf  # they load lxml, which most nights do without
        from builder.check.visit import VisitOptions
        from builder.commands.make import check

        job, own = next(iter(lists[name].items()))

        def visit(
            previous: Mapping[str, Any] | None, job: HarvestJob = job, own: ListOptions = own
        ) -> dict[str, Any]:
            asker = check.open_asker(context, job.base_url, own.headers, agent, _SECONDS, own.pace)
            options = VisitOptions(prefix=job.prefix, set=job.set, previous=previous)
            return check.judge(context, asker, options, own.headers)

        try:
            card = shelf.renew_card(home, name, visit)
        except SheafError as error:  # it holds nothing back
            card = f"not checked: {error}"
        standings[name] = standings[name].note_card(card, now)


def _plan(context: Context, rule: Mapping[str, Any]) -> dict[HarvestJob, ListOptions]:
    """Return the lists of a repository. Raises UsageError, and ConfigurationError for a secret."""
    url, headers = harvest.normal_url(rule["url"]), {}
    for key, form in (("header", "{}"), ("token", "Authorization: Bearer {}")):
        if rule[key]:
            where = f"{key} of {rule['name']} is in the variable {rule[key]}, which is"
            value = context.environment.get(rule[key], "").strip()
            try:
                origin, name, content = harvest.parse_header(form.format(value))
            except argparse.ArgumentTypeError:
                origin = "it names no header"
            if origin or not value:  # it is a secret, so that no message shows it
                problem = "not printable ASCII, or no 'Name: value'" if value else "not set"
                raise ConfigurationError(f"repositories: {where} {problem}")
            headers[name] = content
    repository = find_repository(list_addresses(context.configuration), url)
    dates = HarvestDates(full=rule["full"], remove_missing=rule["full"])
    options = ListOptions(dates, headers, pace=rule["pace"], minutes=rule["minutes"])
    lists = product(rule["prefixes"], rule["sets"] or [None])
    return {
        HarvestJob(url, prefix, spec, None, repository, rule["replicate"]): options
        for prefix, spec in lists
    }


def _check_sources(context: Context, *, is_empty: bool) -> None:
    """Raise UsageError if nothing is configured, or a store that replicates refuses something.

    That is told now, and so is an unreachable store: not after hours.
    """
    context.store.tag(layout.POINTER)
    read_replica(context.configuration, context.store)
    inner = _join_defaults(context, ingest)
    for source, reader in ingest.load_sources():
        names: Sequence[str] | None = None
        with suppress(SheafError):  # the table of results names it
            names = reader.defaults(inner)
        if source is not HARVEST and (names is None or names):
            refuse_beside_replica(context.configuration, _name_source(source))
            is_empty = False
    if is_empty:
        raise UsageError("nothing to update: add [[repositories]] or another source")


def _name_source(source: Source) -> str:
    return f"{source.package.rpartition('.')[2]} (source)"


def _ingest(context: Context, standings: dict[str, Standing]) -> tuple[list[str], dict[str, Any]]:
    """Ingest what each source reads by default; return texts and documents.

    A source that fails is named in `standings`, and holds no other one back. What is harvested is
    named only if it cannot be read: its repositories are.
    """
    inner, began = _join_defaults(context, ingest), context.now()
    documents, texts = dict[str, Any](), list[str]()
    for source, reader in ingest.load_sources():
        name, reports, failure = _name_source(source), list[SourceReport](), ""
        before = standings.pop(name, Standing())
        try:
            if not (names := reader.defaults(inner)):
                continue
            reports += filter(None, [read() for read in ingest.plan_reads(inner, names)])
        except SheafError as error:
            failure = str(error)
        for report in reports:
            documents |= report.document
            texts.append(report.text)
        reason = failure or "; ".join(report.failed for report in reports if report.failed)
        standing = before.end_ingest(reports, began, reason)
        if source is not HARVEST or reason:
            standings[name] = standing
    return texts, documents


def _join_defaults(context: Context, body: Any) -> Context:
    """Return the context for another command, with the defaults of its arguments."""
    parser = argparse.ArgumentParser()
    body.add(parser)
    values = {**vars(parser.parse_args([])), **vars(context.arguments)}
    return replace(context, arguments=argparse.Namespace(**values))
