"""What a harvester holds of an item, and what a page gives it."""

from dataclasses import dataclass, replace
from datetime import datetime

from functions.snapshot import instant
from tests.functions.oai.client import Page
from tests.functions.oai.validity import DC, OAI
from tests.interleaving.chronicle import Row
from tests.interleaving.item import Item


@dataclass(frozen=True)
class Held:
    """What a harvester holds of an item; of headers alone there is no title."""

    stamp: datetime
    item: Item


def held(row: Row, verb: str, spec: str | None = None) -> Held:
    """Return what a harvester is to hold of a row, as a list of a set has it.

    Nobody is told why a tombstone is one, nor what else an item left.
    """
    item = row.item.shown(spec)
    title = item.title if verb == "ListRecords" else None
    return Held(row.stamp, replace(item, title=title, withdrawn=False, left=()))


def records(page: Page) -> list[tuple[str, Held]]:
    found = []
    titles = {
        record.findtext(f"{OAI}header/{OAI}identifier"): next(record.iter(f"{DC}title"), None)
        for record in page.root.iter(f"{OAI}record")
    }
    for header in page.root.iter(f"{OAI}header"):
        name = str(header.findtext(f"{OAI}identifier"))
        title = titles.get(name)
        sets = tuple(e.text or "" for e in header.iter(f"{OAI}setSpec"))
        deleted = header.get("status") == "deleted"
        item = Item(None if title is None else title.text, sets, deleted)
        found.append((name, Held(instant.from_text(str(header.findtext(f"{OAI}datestamp"))), item)))
    return found
