"""Preview of a selection: the items to check before a withdrawal or its reversal."""

from dataclasses import dataclass

from builder.snapshot.lookup import NATURAL_ORDER
from functions.database import engine
from functions.snapshot import schema

_HOSTS = 10
_IS_TEMPLATE = "kind = 'template'"
_IS_DATASET = f"kind IN {engine.texts(schema.DATASETS)}"
_TITLE = (
    "coalesce(title, document ->> '$.fields.title[0]', document ->> '$.fields.name[0]', "
    "document ->> '$.title') AS title"
)


@dataclass(frozen=True, slots=True)
class Item:
    """An item; for a tombstone, only the identifier is known."""

    identifier: str
    url: str | None
    date: str | None
    host: str | None
    kind: str = "capture"
    title: str | None = None
    """The name, if the item is an archive or series of RePEc."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Number of items, the first items by kind, SURT and date, and the hosts with the most items.

    Each host comes with its number of items; an unknown host is None. `templates` and `datasets`
    are not counted by host.
    """

    count: int
    items: tuple[Item, ...]
    hosts: tuple[tuple[str | None, int], ...]
    templates: int = 0
    datasets: int = 0


def preview(connection: engine.Connection, table: str, most: int | None) -> Preview:
    """Return a preview of a table with the columns of `records`, with at most `most` items."""
    with engine.reading("the items"):
        ((count, templates, datasets),) = connection.execute(
            f"SELECT count(*), count(*) FILTER ({_IS_TEMPLATE}), count(*) FILTER ({_IS_DATASET}) "
            f"FROM {table}"
        ).fetchall()
        rows = connection.execute(
            f"SELECT identifier, url, fetch_date, url_host_name, kind, {_TITLE} "
            f"FROM {table} ORDER BY {NATURAL_ORDER} LIMIT $most",
            {"most": count if most is None else most},
        ).fetchall()
        hosts = connection.execute(
            f"SELECT url_host_name, count(*) AS items FROM {table} WHERE kind = 'capture' "
            f"GROUP BY ALL ORDER BY items DESC, url_host_name LIMIT {_HOSTS}"
        ).fetchall()
    return Preview(count, tuple(Item(*row) for row in rows), tuple(hosts), templates, datasets)
