"""State of the obi store before a run: the templates and ReDIF files that it has.

It is that of builder.obi.replay, but of templates and files of ReDIF alone, and of the newest
versions. Few columns of the logs are read for it.
"""

from collections.abc import Sequence
from pathlib import Path

from builder.obi import replay
from builder.obi.content import DELETION, SOURCE, TEMPLATE
from builder.obi.history import Committed
from functions.snapshot import obi
from functions.snapshot.store import Reader
from functions.store import engine

_AT_ONCE = 64  # logs
_TYPES = {column.name: column.type for column in (*obi.VERSION, *obi.INCIDENCE)}
_VERSION = [
    "tist",
    "id",
    "kind",
    "key",
    "bytes",
    "md5",
    "sha256",
    "text_sha256",
    "home",
    "source",
    "length",
    "encoding",
    "type",
    "pack",
    "start",
]
_EVENT = ("tist", "id", "what")
_SEEN = ("tist", "id", "kind", "home", "source")
_TABLES = {
    "logged_version": (_VERSION, f"row = 'version' AND kind IN ('{TEMPLATE}', '{SOURCE}')"),
    "event": (_EVENT, f"row = 'incidence' AND kind = '{TEMPLATE}'"),
    "seen": (_SEEN, f"row = 'seen' AND kind = '{TEMPLATE}'"),
}
# Each step may exceed memory: it only groups, or joins.
_STATE = f"""
CREATE TABLE newest AS
SELECT id, kind, max(tist) AS tist, max(tist) FILTER (home IS NOT NULL) AS housed,
    arg_max(home, tist) AS home
FROM logged_version GROUP BY id, kind;

CREATE TABLE version AS SELECT v.* FROM logged_version v SEMI JOIN newest USING (id, kind, tist);

CREATE TABLE gone AS
SELECT d.id, d.tist AS lost
FROM (SELECT id, max(tist) AS tist FROM event WHERE what = '{DELETION}' GROUP BY id) d
WHERE NOT EXISTS (SELECT 1 FROM event e WHERE e.id = d.id AND e.tist > d.tist);

CREATE TABLE moved AS
SELECT id, max(tist) AS tist, arg_max(home, tist) AS home FROM seen
WHERE home IS NOT NULL GROUP BY id;

CREATE TABLE obi AS
SELECT v.id, v.kind, v.tist AS noted, g.lost, v.key,
    if(v.kind = '{TEMPLATE}', v.text_sha256, v.sha256) AS digest,
    if(m.tist > coalesce(n.housed, 0), m.home, n.home) AS home
FROM version v JOIN newest n USING (id, kind)
LEFT JOIN gone g ON g.id = v.id AND v.kind = '{TEMPLATE}'
LEFT JOIN moved m ON m.id = v.id AND v.kind = '{TEMPLATE}';

DROP TABLE logged_version; DROP TABLE event; DROP TABLE newest; DROP TABLE gone; DROP TABLE moved
"""


def read_state(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    scratch: Path,
    within: str = "true",
) -> None:
    """Create `obi`, `version` and `seen` as `runs` have them; `version` has the newest ones.

    `within` is a condition on the rows of logs. Raises DamagedStore and StoreError.
    """
    for table, (columns, _) in _TABLES.items():
        typed = ", ".join(f"{name} {_TYPES[name]}" for name in columns)
        connection.execute(f"CREATE TABLE {table} ({typed})")
    counting = f"({within}) AND {replay.find_undone(connection, store, runs, scratch)}"
    for at in range(0, len(runs), _AT_ONCE):
        with replay.logs(connection, store, runs[at : at + _AT_ONCE], scratch) as logs:
            for sql in logs:
                for table, (columns, condition) in _TABLES.items():
                    connection.execute(
                        f"INSERT INTO {table} SELECT {', '.join(columns)} FROM ({sql}) "
                        f"WHERE {condition} AND {counting}"
                    )
    with engine.reading("the logs of the runs"):
        connection.execute(_STATE)
