"""Checks of the obi store's derived tables of files, against the logs of its runs."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from builder.gather import file_table
from builder.obi import key
from builder.obi.history import history
from builder.store.findings import Finding
from functions.database import engine
from functions.snapshot.errors import DamagedStore
from functions.snapshot.store import Writer

_CODE = "files-table-wrong"


def file_table_findings(store: Writer) -> Iterator[Finding]:
    """Yield findings on all tables of files. Raises StoreError."""
    for where in store.keys(key.FILES):
        if key.parse_file_table(where) is None:
            yield Finding("obi-stray", where, "it is no table of files")
        elif problem := _find_problem(store, where):
            yield Finding(_CODE, where, problem)


def _find_problem(store: Writer, where: str) -> str:
    with tempfile.TemporaryDirectory(prefix="sheaf-verify-") as folder:
        scratch = Path(folder)
        try:
            runs = history(store)
            with closing(engine.connect(scratch=scratch)) as connection:
                table = file_table.read(store, where, runs, connection)
                if table is None:
                    return "its bytes or its run differ from its name"
                count = file_table.count_differences(connection, store, table, runs, scratch)
        except DamagedStore:
            return ""  # reported with the runs
    return f"{count:,} rows differ from the runs' logs" if count else ""
