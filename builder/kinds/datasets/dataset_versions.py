"""Versions of datasets: what the results of requests change of each, and how they are related.

Each version is an item of its own and keeps its files. If its platform closes it (removes it, or
restricts access), the item stays, and `access` in its document says so, until a later result has
the files again. With `follow`, what is removed becomes a tombstone that keeps its sets. All live
versions of a dataset name each other.
"""

from datetime import datetime

from builder.kinds.sets import LEFT
from builder.snapshot.sql import Statements
from builder.sources.datasets.entry import DELETE, LEAVE, LIST
from builder.sources.datasets.status import STATUSES
from functions.store import engine

_SQL = Statements(__file__)
_DATASET = "array_to_string(string_split({}, ',')[:4], ',')"
DATASET = _DATASET.format("identifier")
"""SQL for the identifier of all versions of the dataset that `identifier` is a version of."""
TELLING = tuple(status.name for status in STATUSES.values() if status.lists or status.gone)
"""Statuses that say something about an item."""

_CLOSING = engine.texts(status.name for status in STATUSES.values() if status.closes)
_VERSION_RESULTS = _SQL.get(
    "version_results", dataset=DATASET, list=LIST, delete=DELETE, leave=LEAVE, closing=_CLOSING
)
_DECIDED_VERSIONS = _SQL.get("decided_versions", dataset_of_v=_DATASET.format("v.identifier"))
OUTDATED_VERSIONS = _SQL.get("outdated_versions", results=engine.table("$results"))
_REVISED_FILESETS = _SQL.get(
    "revised_filesets", left=LEFT.format(earlier="list_concat(old_sets, old_left_sets)", now="sets")
)


def decide(connection: engine.Connection, follow: bool) -> None:
    """Make `decided_versions` of `identified_results` and `listed_versions`."""
    connection.execute(_VERSION_RESULTS)
    connection.execute(_DECIDED_VERSIONS, {"follow": follow})


def count_late(connection: engine.Connection, since: datetime) -> int:
    """Return how many versions are changed by results from before `since`."""
    values = {"since": since.replace(tzinfo=None)}
    ((late,),) = connection.execute(_SQL.get("late_versions"), values).fetchall()
    return int(late)


def refuse_altered(connection: engine.Connection) -> list[str]:
    """Remove the versions whose archived files have other digests than were published.

    Returns the keys of these files, at most one of each dataset.
    """
    connection.execute(_SQL.get("altered_versions"))
    connection.execute(_SQL.get("refused_versions"))
    rows = connection.execute(
        "SELECT min(key) FROM altered_versions GROUP BY identifier ORDER BY 1"
    )
    return [key for (key,) in rows.fetchall()]


def relate(connection: engine.Connection) -> None:
    """Make `revised_filesets`: the versions that change, or whose related versions do."""
    connection.execute(_SQL.get("related_versions", dataset=DATASET))
    connection.execute(_REVISED_FILESETS)
