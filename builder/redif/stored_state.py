"""State of the obi store before a run: the templates and ReDIF files that it has.

It is that of builder.obi.replay, but of templates and files of ReDIF alone, and of the newest
versions. Few columns of the logs are read for it.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, BinaryIO

from builder.obi import content, key, replay
from builder.obi.content import DELETION, SOURCE, TEMPLATE, Version
from builder.obi.history import Committed
from functions.database import engine
from functions.snapshot.store import Reader

_AT_ONCE = 64  # logs
_VERSION = {
    "tist": "BIGINT",
    "id": "VARCHAR",
    "kind": "VARCHAR",
    "key": "VARCHAR",
    "bytes": "BIGINT",
    "md5": "VARCHAR",
    "sha256": "VARCHAR",
    "text_sha256": "VARCHAR",
    "home": "VARCHAR",
    "source": "VARCHAR",
    "length": "BIGINT",
    "encoding": "VARCHAR",
    "type": "VARCHAR",
    "pack": "VARCHAR",
    "start": "BIGINT",
}
_EVENT = {"tist": "BIGINT", "id": "VARCHAR", "what": "VARCHAR"}
_SEEN = {
    "tist": "BIGINT",
    "id": "VARCHAR",
    "kind": "VARCHAR",
    "home": "VARCHAR",
    "source": "VARCHAR",
}
_SIGHT = {"tist": "BIGINT", "id": "VARCHAR", "row": "VARCHAR"}
_TABLES = {
    "logged_version": (_VERSION, f"row = 'version' AND kind IN ('{TEMPLATE}', '{SOURCE}')"),
    "event": (_EVENT, f"row = 'incidence' AND kind = '{TEMPLATE}'"),
    "seen": (_SEEN, f"row = 'seen' AND kind = '{TEMPLATE}'"),
    "sight": (_SIGHT, f"row IN ('seen', 'absent') AND kind = '{SOURCE}'"),
}
_LAST = 10**12
"""A time after all runs."""
NOTHING_REVISED: Mapping[int, Path] = {}
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

CREATE TABLE absent AS
SELECT s.id FROM (SELECT id, max(tist) AS tist, arg_max(row, tist) AS row FROM sight GROUP BY id) s
JOIN newest n ON n.id = s.id AND n.kind = '{SOURCE}' WHERE s.row = 'absent' AND s.tist > n.tist;

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

DROP TABLE logged_version; DROP TABLE event; DROP TABLE newest; DROP TABLE gone; DROP TABLE moved;
DROP TABLE sight
"""


def read_state(
    connection: engine.Connection,
    store: Reader,
    runs: Sequence[Committed],
    scratch: Path,
    before: int = _LAST,
    revised: Mapping[int, Path] = NOTHING_REVISED,
    within: str = "true",
) -> None:
    """Create `obi`, `version`, `seen` and `absent` as `runs` have them for a time.

    That is the state before the time `before`. `version` has the newest version of each object, and
    `absent` the ReDIF files that were not there any more. `revised` has logs by their times, which
    replace all rows of these times. `within` is a condition on the rows of logs. Raises
    DamagedStore and StoreError.
    """
    for table, (columns, _) in _TABLES.items():
        typed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({typed})")
    counting = f"({within}) AND {replay.find_undone(connection, store, runs, scratch)}"
    times = "".join(f" AND tist != {time}" for time in revised)
    if before < _LAST:
        times += f" AND tist < {before}"
    for at in range(0, len(runs), _AT_ONCE):
        with replay.logs(connection, store, runs[at : at + _AT_ONCE], scratch) as logs:
            for sql in logs:
                _insert(connection, f"({sql})", f"{counting}{times}")
    for time, path in revised.items():
        file = engine.table(f"[{engine.quote(str(path))}]")
        _insert(connection, f"(SELECT *, {time}::BIGINT AS tist FROM {file})", "true")
    with engine.reading("the logs of the runs"):
        connection.execute(_STATE)


def _insert(connection: engine.Connection, rows: str, counting: str) -> None:
    for table, (columns, condition) in _TABLES.items():
        names = ", ".join(columns)
        connection.execute(
            f"INSERT INTO {table} SELECT {names} FROM {rows} WHERE {condition} AND {counting}"
        )


def open_stored(store: Reader, stored: Sequence[Any]) -> AbstractContextManager[BinaryIO]:
    """Return the bytes of a ReDIF file of the store, by its row in builder/redif/later.sql.

    Raises OSError if they are damaged.
    """
    size, sha256, pack, start, where = stored
    if pack is not None:
        store.local(key.pack(pack))  # files of a pack come one after the other
    version = Version(
        id="", kind=SOURCE, key=where, bytes=size, md5="", sha256=sha256, pack=pack, start=start
    )
    return closing(content.open_version(store, version))
