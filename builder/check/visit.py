"""Visit of a repository: what is asked, in order, within the budget of its asker."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builder.check.arguments import check_arguments
from builder.check.asker import Asker
from builder.check.checks import CheckCard
from builder.check.conversation import Conversation
from builder.check.dates import check_windows, judge_datestamps
from builder.check.exchange import Exchange
from builder.check.lists import PageWalk, judge_walk, list_items, walk_list
from builder.check.protocol import judge_identify
from builder.check.reply import OaiReply
from builder.check.sample import RecordSample, SampledRecord
from builder.check.sets import check_formats, check_items, check_sets, compare_lists
from builder.check.text import read_words
from builder.runtime import Clock
from functions.snapshot.instant import from_datestamp

_PAGES, _PAGES_OF_LARGE = 100, 12
"""Pages of a list that are walked, and of one that is known to have more than these."""
_OF_WHOLE = frozenset({"L01", "L02", "L03", "L06", "L07", "L12"})
"""Checks that only a list that was walked to its end shows."""
_OTHER_FORMATS = 3
_ASKED_AGAIN = 40
"""Records of an earlier visit that are asked for one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitOptions:
    """What is checked: the format, perhaps one set, and the size of the sample.

    `namespaces` are of formats to sample besides. `previous` is the report of an earlier visit.
    """

    prefix: str = "oai_dc"
    set: str | None = None
    sample: int = 200
    namespaces: frozenset[str] = frozenset()
    previous: Mapping[str, Any] | None = None

    def select(self, prefix: str) -> dict[str, str]:
        """Return the arguments of a list of records in a format."""
        own = {} if self.set is None else {"set": self.set}
        return {"metadataPrefix": prefix, **own}


@dataclass(slots=True)
class Visit:
    """What a visit brought, beside its card: exchanges, fields of Identify, formats, records.

    `missing` are records of an earlier sample: `identifier`, `prefix`, and the error, `missing`.
    """

    url: str
    begun: str = ""
    seconds: float = 0.0
    exchanges: Sequence[Exchange] = ()
    identify: Mapping[str, str] = field(default_factory=dict)
    formats: Sequence[Mapping[str, str]] = ()
    sets: int | None = None
    walk: PageWalk | None = None
    clock: int | None = None
    software: str | None = None
    sample: Sequence[SampledRecord] = ()
    missing: Sequence[Mapping[str, str]] = ()


def visit(asker: Asker, card: CheckCard, clock: Clock, options: VisitOptions) -> Visit:
    """Ask a repository all there is to ask, judge the answers on the card, and return the rest."""
    began = clock()
    talk = Conversation(asker, card, clock)
    result = Visit(asker.base_url, talk.begun, exchanges=talk.exchanges)
    reply = talk.ask_verb("Identify")
    # Some repositories answer all but Identify.
    if reply is None or (reply.exchange.status and not reply.is_challenge):
        if reply is not None and reply.is_list:
            _read_identify(talk, result, reply)
            _check_http(talk, reply)
        result.formats = check_formats(talk)
        _check_lists(talk, result, options)
        check_arguments(talk, options.prefix, result.identify.get("granularity", ""))
    for other in talk.others():
        if other.page is not None:
            judge_datestamps(talk, list_items(other), result.identify)
    result.seconds = round((clock() - began).total_seconds(), 1)
    return result


def _read_identify(talk: Conversation, result: Visit, reply: OaiReply) -> None:
    result.identify = judge_identify(talk.card, reply, talk.asker.base_url)
    date = from_datestamp((reply.page.date if reply.page else "") or "")
    if date is not None:
        result.clock = round((date - talk.clock()).total_seconds())
    fields = reply.exchange.fields
    betrayed = " ".join([fields.get("server", ""), fields.get("x-powered-by", "")]).encode()
    body = (betrayed + reply.exchange.body).decode("utf-8", "replace")
    patterns = read_words()["software"].items()
    result.software = next((n for n, words in patterns if re.search(words, body, re.I)), None)


def _check_http(talk: Conversation, reply: OaiReply) -> None:
    """Ask Identify again by POST, and without compression."""
    if reply.exchange.redirected or "?" in talk.asker.base_url:
        # Neither the arguments of a base URL nor redirects are the same for POST.
        talk.card.leave("the URL redirects, or has arguments of its own", "H07")
    elif (posted := talk.ask(("verb", "Identify"), method="POST", wrong=True)) is None:
        talk.card.leave(talk.asker.reason, "H07", "H08")
    else:
        seen = f"status {posted.exchange.status}, {', '.join(posted.codes) or 'another answer'}"
        rows = (p.rows if p else () for p in (posted.page, reply.page))
        talk.card.hold("H07", next(rows) == next(rows), seen, request=posted.number)
    plain = talk.ask(("verb", "Identify"), coding="identity")
    if plain is not None:
        coded = plain.exchange.coded
        talk.card.hold("H08", not coded, f"{coded}, though not accepted", request=plain.number)


def _check_lists(talk: Conversation, result: Visit, options: VisitOptions) -> None:
    left = talk.asker.seconds_left()
    arguments = options.select(options.prefix)
    listing = walk_list(talk, "ListSets", {}, _PAGES, left * 0.85)
    if listing.seconds or listing.ended:
        result.sets = listing.size or listing.count
    sample = RecordSample(options.sample)
    most = (_PAGES, left * 0.5, sample, _PAGES_OF_LARGE)
    walk = result.walk = walk_list(talk, "ListRecords", arguments, *most)
    if not walk.tokens:
        reason = f"the list of {options.prefix} has one page"
        talk.card.leave(reason, "H09", "H12", "L04", "L07", "L08", "L09")
    judge_walk(talk, walk)
    identifiers = walk_list(talk, "ListIdentifiers", arguments, 2, left * 0.3)
    others = [identifiers, *check_sets(talk, listing, walk, left * 0.3)]
    check_items(talk, walk)
    check_windows(talk, walk, result.identify, sample)
    compare_lists(talk, walk, others)
    items = [*walk.items, *(item for other in others for item in other.items)]
    judge_datestamps(talk, items, result.identify)
    dead = [item for item in items if item.deleted]
    if result.identify:
        where = (dead[0].identifier, dead[0].request) if dead else ()
        right = not dead or result.identify.get("deletedRecord") != "no"
        talk.card.hold("X01", right, "deletedRecord is no, and it lists a deleted one", *where)
    result.sample = [*sample.records(), *_sample_others(talk, result, options, left * 0.1)]
    if not walk.ended:
        # That the lists of sets and windows are whole does not show that this one is.
        talk.card.withhold(walk.stopped, *_OF_WHOLE)
    if options.previous is not None:
        _ask_again(talk, result, options.previous, left * 0.05)


def _sample_others(
    talk: Conversation, result: Visit, options: VisitOptions, reserve: float
) -> Sequence[SampledRecord]:
    """Return records of other formats: of those that are asked for, else of the first."""
    others = [r for r in result.formats if r.get("metadataPrefix", "") not in ("", options.prefix)]
    wanted = [r for r in others if r.get("metadataNamespace") in options.namespaces] or others[:1]
    records: list[SampledRecord] = []
    for row in wanted[:_OTHER_FORMATS]:
        if talk.asker.seconds_left() > reserve:
            sample = RecordSample(options.sample)
            arguments = options.select(row["metadataPrefix"])
            walk_list(talk, "ListRecords", arguments, 3, reserve, sample)
            records += sample.records()
    return records


def _ask_again(
    talk: Conversation, result: Visit, previous: Mapping[str, Any], reserve: float
) -> None:
    """Ask for records of an earlier sample that the lists did not show, evenly spread."""
    shown = {(record.identifier, record.prefix) for record in result.sample}
    earlier = [(row["identifier"], row["prefix"]) for row in previous["sample"]]
    rest = [key for key in earlier if key not in shown]
    sample, missing = RecordSample(_ASKED_AGAIN), list[dict[str, str]]()
    for identifier, prefix in rest[:: -(-len(rest) // _ASKED_AGAIN) or 1]:
        if talk.asker.seconds_left() <= reserve:
            break
        reply = talk.ask_verb("GetRecord", identifier=identifier, metadataPrefix=prefix)
        if reply is None or reply.page is None:
            continue
        key = {"identifier": identifier, "prefix": prefix}
        missing += [key | {"missing": code} for code in reply.codes[:1]]
        for entry in reply.page.entries:
            sample.add(entry, prefix, reply.number)
    result.sample, result.missing = [*result.sample, *sample.records()], missing
