"""Documents of templates: from the runs that recorded them, with links to gathered files.

The documents of a run are a local file sorted by id. Whoever needs them reads ranges of ids. So
they are never in memory or in a table as a whole.
"""

from collections.abc import Sequence
from pathlib import Path

from builder.obi import log_table
from builder.obi.content import FILE
from builder.obi.history import Committed
from builder.snapshot.sql import Statements
from functions.snapshot import obi
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Reader
from functions.store import engine

_SQL = Statements(__file__)
LINKED = _SQL.get("linked_document", member=obi.GATHERED)
"""SQL for the document of `d` with the links of `g`, a row of `gathered_files` or NULLs."""
_AT_ONCE = 32  # files that a range is read from
_NEEDED = "SELECT DISTINCT run FROM wanted_templates WHERE fresh AND NOT lost ORDER BY run"
_LACKING = (
    "SELECT handle, run FROM wanted_templates "
    "ANTI JOIN run_documents d ON handle = id AND noted = tist "
    "WHERE fresh AND NOT lost ORDER BY ALL LIMIT 1"
)
_FILE = "SELECT id, {tist}::BIGINT AS tist, {run}::BIGINT AS run, sets, document FROM {file}"
_PARQUET = "(FORMAT parquet, COMPRESSION lz4, ROW_GROUP_SIZE 8192)"
# A run that revises later ones may have a document of the same time as the revised run.
_COUNTING = (
    "FROM ({rows}) d SEMI JOIN wanted_templates w ON id = handle AND tist = noted AND d.run = w.run"
)
_JOINED = f"COPY ({_COUNTING} ORDER BY id, tist) TO {{target}} {_PARQUET}"


def find_documents(
    connection: engine.Connection, store: Reader, runs: Sequence[Committed], folder: Path
) -> None:
    """Make `run_documents` of the fresh ones of `wanted_templates`, and `gathered_files` of all.

    Files are put into `folder`, where they stay. Raises DamagedStore if a run lacks the document of
    a template.
    """
    with engine.reading("the logs of the runs"):
        needed = [tist for (tist,) in connection.execute(_NEEDED).fetchall()]
    by_tist = {run.tist: run for run in runs}
    queries = []
    for run in (by_tist[tist] for tist in needed):
        copy = folder / f"documents-{run.tist}"
        path = log_table.local_file(store, run.documents_key, run.documents, copy)
        file = engine.table(f"[{engine.quote(str(path))}]")
        own = run.tist if run.as_of is None else "own_tist"
        queries.append(_FILE.format(tist=own, run=run.tist, file=file))
    with engine.reading("the documents of the runs"):
        number = 0
        while len(queries) > _AT_ONCE:
            file = engine.quote(str(folder / f"joined-{number}.parquet"))
            connection.execute(
                _JOINED.format(rows=" UNION ALL ".join(queries[:_AT_ONCE]), target=file)
            )
            queries[:_AT_ONCE] = []
            queries.append(_FILE.format(tist="tist", run="run", file=engine.table(f"[{file}]")))
            number += 1
        rows = " UNION ALL ".join(queries)
        if any(run.as_of is not None for run in runs):
            rows = _COUNTING.format(rows=rows)
        if queries:
            connection.execute(f"CREATE OR REPLACE VIEW run_documents AS {rows}")
        else:
            connection.execute(
                "CREATE OR REPLACE TABLE run_documents "
                "(id VARCHAR, tist BIGINT, run BIGINT, sets VARCHAR[], document VARCHAR)"
            )
        lacking = connection.execute(_LACKING).fetchall()
        connection.execute(_SQL.get("gathered_files", kind=FILE, member=obi.GATHERED))
    for handle, run in lacking:
        raise DamagedStore(
            f"{by_tist[run].documents_key} is damaged: it lacks the document of {handle}"
        )
