"""Checks of sets, formats and single records: what other requests say of listed items."""

import re
from collections.abc import Mapping, Sequence

from builder.check.conversation import Conversation
from builder.check.lists import ListedItem, PageWalk, list_items, walk_list
from functions.oai.request import NO_SETS
from functions.snapshot import oai_name

_PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")
_URL = re.compile(r"[a-z][a-z0-9+.-]*:[^\s<>\"]+", re.IGNORECASE)
_SETS = 3
"""Sets whose lists are asked for."""


def check_formats(talk: Conversation) -> list[Mapping[str, str]]:
    """Ask for the formats, and return their rows."""
    reply = talk.ask_verb("ListMetadataFormats")
    if reply is None or reply.page is None or reply.page.errors:
        return []
    rows = list(reply.page.rows)
    names = [row.get("metadataPrefix", "") for row in rows]
    talk.card.hold("F01", "oai_dc" in names, f"only {', '.join(names)}", request=reply.number)
    for row in rows:
        name = row.get("metadataPrefix", "")
        right = (
            _PREFIX.fullmatch(name)
            and names.count(name) == 1
            and _URL.fullmatch(row.get("schema", ""))
            and _URL.fullmatch(row.get("metadataNamespace", ""))
        )
        talk.card.hold("F02", right, f"{dict(row)}", name, reply.number)
    return rows


def check_sets(
    talk: Conversation, listing: PageWalk, walk: PageWalk, reserve: float
) -> list[PageWalk]:
    """Judge setSpecs, and ask for the lists of a few sets, which are returned."""
    card, specs = talk.card, [item.identifier for item in listing.items]
    for item in listing.items:
        spec = item.identifier
        card.hold("S01", oai_name.is_set(spec), f"setSpec {spec!r}", spec, item.request)
        card.hold("S04", specs.count(spec) == 1 or len(specs) > 5000, "twice", spec, item.request)
    is_whole = listing.ended and bool(listing.seconds or listing.stopped == NO_SETS)
    listed = {*specs}
    for header in walk.items:
        for spec in header.sets:
            where = (header.identifier, header.request)
            if spec not in listed:
                card.hold("S01", oai_name.is_set(spec), f"setSpec {spec!r}", *where)
            if is_whole and oai_name.is_set(spec):
                card.hold("S03", spec in listed, f"the set {spec!r} is not listed", *where)
    walks = []
    usable = [spec for spec in specs if oai_name.is_set(spec)]
    for spec in [s for s in usable if s != walk.arguments.get("set")][:_SETS]:
        if talk.asker.seconds_left() < reserve:
            break
        own = walk_list(
            talk, "ListIdentifiers", {"metadataPrefix": walk.prefix, "set": spec}, 2, reserve
        )
        walks.append(own)
        for header in own.items:
            right = any(s == spec or s.startswith(f"{spec}:") for s in header.sets)
            seen = f"sets {', '.join(header.sets) or 'none'} in the list of {spec}"
            card.hold("S02", right, seen, header.identifier, header.request)
    return walks


def compare_lists(talk: Conversation, walk: PageWalk, others: Sequence[PageWalk]) -> None:
    """Judge whether lists agree about the same records: S05, X02, and L12 for the same list."""
    card, doubled = talk.card, walk.repeats()
    first = {item.identifier: item for item in reversed(walk.items)}
    for other in others:
        for item in other.items:
            mine = first.setdefault(item.identifier, item)
            if (
                mine is not item
                and item.identifier not in doubled
                and talk.is_old(mine.datestamp, item.datestamp)
            ):
                _compare_headers(talk, mine, item)
    for other in others:
        is_same = other.arguments == walk.arguments
        if is_same and walk.ended and walk.seconds:
            names = {item.identifier for item in walk.items}
            for item in other.items:
                if talk.is_old(item.datestamp):
                    seen = f"{other.verb} has it, {walk.verb} not"
                    card.hold("L12", item.identifier in names, seen, item.identifier, item.request)
            if other.ended and other.seconds and not walk.lost:
                seen = f"{walk.verb} {walk.count:,} records, {other.verb} {other.count:,}"
                card.hold("L12", walk.count == other.count, seen)


def _compare_headers(talk: Conversation, mine: ListedItem, item: ListedItem) -> None:
    where = (item.identifier, item.request)
    seen = f"sets {', '.join(mine.sets)}, and {', '.join(item.sets)}"
    talk.card.hold("S05", {*mine.sets} == {*item.sets}, seen, *where)
    seen = f"{mine.show()}, and {item.show()}"
    talk.card.hold("X02", mine.deleted == item.deleted, seen, *where)


def check_items(talk: Conversation, walk: PageWalk) -> None:
    """Ask for a few single records and their formats, and compare these with the list."""
    doubled = walk.repeats()
    usable = [
        item
        for item in walk.items
        if item.identifier not in doubled and talk.is_old(item.datestamp)
    ]
    live = [item for item in usable if not item.deleted]
    dead = [item for item in usable if item.deleted]
    chosen = [*live[:1], *live[len(live) // 2 :][:1], *dead[:1]]
    for item in {item.identifier: item for item in chosen if item.identifier}.values():
        where = item.identifier
        reply = talk.ask_verb("GetRecord", identifier=where, metadataPrefix=walk.prefix)
        if reply is not None and reply.page is not None:
            entries = list_items(reply)
            again = f"the error {', '.join(reply.codes)}"
            right = False
            if entries:
                mine = entries[0]
                again = mine.show()
                shown = item.datestamp, mine.datestamp
                # Dates of different granularity have a check of their own, D01.
                same = len({date[:10] if len(set(map(len, shown))) > 1 else date for date in shown})
                right = same == 1 and mine.deleted == item.deleted
                if {*mine.sets} != {*item.sets}:
                    _compare_headers(talk, item, mine)
            seen = f"listed as {item.show()}, GetRecord: {again}"
            talk.card.hold("L13", right, seen, where, reply.number)
            if item is chosen[0] and "H07" in talk.card.applied:
                sent = (("identifier", where), ("metadataPrefix", walk.prefix))
                posted = talk.ask(("verb", "GetRecord"), *sent, method="POST", wrong=True)
                if posted is not None:
                    same = posted.page is not None and len(posted.page.entries) == len(entries)
                    seen = f"GetRecord: status {posted.exchange.status}, {posted.codes}"
                    talk.card.hold("H07", same, seen, where, posted.number)
        formats = talk.ask_verb("ListMetadataFormats", identifier=where)
        if formats is not None and formats.page is not None and not item.deleted:
            prefixes = [row.get("metadataPrefix", "") for row in formats.page.rows]
            seen = f"{', '.join([*formats.codes, *prefixes])} without {walk.prefix}"
            talk.card.hold("F03", walk.prefix in prefixes, seen, where, formats.number)
