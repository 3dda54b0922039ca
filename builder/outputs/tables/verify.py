"""Checks of the tables: their objects exist, and show the rows of their snapshots."""

import hashlib
from collections.abc import Iterator
from datetime import datetime

from builder.outputs.tables import avro, clean
from builder.outputs.tables import index as keys
from builder.outputs.tables.index import FOLDER, INDEX, TablesIndex
from builder.outputs.tables.metadata import describe_table
from builder.outputs.tables.table import SNAPSHOTS, TABLES, IcebergTable, digest_schemas
from builder.store.findings import Finding
from functions.snapshot.errors import DamagedStore, MissingObject
from functions.snapshot.manifest import Manifest
from functions.snapshot.pointer import Pointer
from functions.snapshot.store import Writer
from functions.store import engine
from functions.store.catalog import Catalogue

_SOURCE = "read_parquet($files, filename = true, file_row_number = true, hive_partitioning = false)"
_DIGEST = "count(*), coalesce(sum(hash(position)), 0)"
_EXPECTED = f"SELECT {_DIGEST} FROM {engine.table('$files')} WHERE {{}}"
_SHOWN = (
    f"SELECT {_DIGEST} FROM {_SOURCE} r WHERE NOT EXISTS (SELECT 1 FROM hidden_rows h "
    "WHERE h.path = r.filename AND h.pos = r.file_row_number)"
)
_HIDDEN = (
    "INSERT INTO hidden_rows SELECT l.local, d.pos "
    f"FROM {engine.table('$deletes')} d JOIN local_files l ON d.file_path = l.path"
)


def table_findings(
    store: Writer, pointer: Pointer, now: datetime, connection: engine.Connection | None
) -> Iterator[Finding]:
    """Yield what is wrong with the tables; with a database, also compare the rows that they show.

    Raises StoreError if the store cannot be read.
    """
    try:
        index = TablesIndex.from_json(store.read(INDEX))
    except MissingObject:
        return
    except DamagedStore as error:
        yield Finding("table-altered", INDEX, str(error))
        return
    newest = pointer.newest()
    if newest is not None and index.snapshot < newest.snapshot:
        problem = f"it ends with snapshot {index.snapshot}, and the newest is {newest.snapshot}"
        yield Finding("tables-behind", INDEX, problem)
    if index.location != store.address:
        problem = f"its paths begin with {index.location}, and the store is at {store.address}"
        yield Finding("tables-moved", INDEX, problem)
    is_earlier = index.schemas != digest_schemas()
    if is_earlier:
        yield Finding("tables-behind", INDEX, "an earlier Sheaf wrote it, with other columns")
    findings = [] if is_earlier else [*_check_metadata(store, index)]
    findings += _check_objects(store, index)
    yield from findings
    if connection is not None and not findings and not is_earlier:
        yield from _check_rows(store, index, connection)
    for key in clean.list_strays(store, now):
        yield Finding("orphan", key, f"{INDEX} does not name it")


def _check_metadata(store: Writer, index: TablesIndex) -> Iterator[Finding]:
    """Check that each hint names metadata of the snapshots of the index.

    Hints are written before the index. An update that died in between leaves them ahead of it.
    """
    for name in index.snapshots:
        expected = {keys.hint_key(name): str(index.version).encode()}
        expected[keys.metadata_key(name, index.version)] = describe_table(index, name)
        for named, data in expected.items():
            content = _read(store, named)
            if isinstance(content, Finding):
                yield content
            elif content != data:
                is_ahead = content.isdigit() and int(content) > index.version
                if is_ahead and store.tag(keys.metadata_key(name, int(content))) is not None:
                    yield Finding("tables-behind", named, f"it is ahead of {INDEX}")
                else:
                    yield Finding("table-altered", named, "its content differs from the index")


def _check_objects(store: Writer, index: TablesIndex) -> Iterator[Finding]:
    """Check that lists, manifests and files of deletes exist and match their names.

    The metadata that hints named before is checked too: readers may still use it.
    """
    for key, digest in index.earlier.items():
        data = _read(store, key)
        if isinstance(data, Finding):
            yield data
        elif hashlib.sha256(data).hexdigest() != digest:
            yield Finding("table-altered", key, "its content differs from the index")
    named = {snapshot.key for table in index.snapshots.values() for snapshot in table}
    # A list names manifests, a manifest files: a damaged one hides only what it alone names.
    for find in (
        lambda entry: entry["manifest_path"],
        lambda entry: entry["data_file"]["file_path"],
        None,
    ):
        below: set[str] = set()
        for key in sorted(named):
            digest = key.rpartition("/")[2].partition(".")[0]
            data = _read(store, key)
            if isinstance(data, Finding):
                yield data
            elif not hashlib.sha256(data).hexdigest().startswith(digest):
                yield Finding("table-altered", key, "its content does not match its name")
            elif find is not None:
                paths = (str(find(entry)) for entry in avro.read_entries(data))
                below.update(path.removeprefix(f"{index.location}/") for path in paths)
        named = {key for key in below if key.startswith(FOLDER)}


def _read(store: Writer, key: str) -> bytes | Finding:
    """Return an object that the index names, or what is wrong with it."""
    try:
        return store.read(key)
    except MissingObject:
        return Finding("table-missing", key, f"{INDEX} names it, but it does not exist")
    except DamagedStore as error:
        return Finding("table-altered", key, str(error))


def _check_rows(
    store: Writer, index: TablesIndex, connection: engine.Connection
) -> Iterator[Finding]:
    """Check each snapshot of each table against the store's own tables."""
    catalogue = Catalogue(store)
    for table in (*TABLES, SNAPSHOTS):
        for snapshot in index.snapshots.get(table.name, ()):
            try:
                manifest = catalogue.manifest(snapshot.number)
                shown = _TableFiles(store, index, snapshot.key)
                problem = (
                    shown.compare(catalogue, manifest, table, connection)
                    if table is not SNAPSHOTS
                    else ""
                )
            except MissingObject:
                if catalogue.pointer().is_retired(snapshot.number):
                    continue  # retired meanwhile
                raise
            if problem:
                yield Finding("table-wrong", snapshot.key, f"snapshot {snapshot.number}: {problem}")
    newest = index.snapshots.get(SNAPSHOTS.name, ())
    if newest and newest[-1].rows != len(catalogue.manifest(newest[-1].number).sequences):
        yield Finding("table-wrong", newest[-1].key, "it does not list the publishes")


class _TableFiles:
    """The data files and delete files of a snapshot of a table, as its manifests name them."""

    def __init__(self, store: Writer, index: TablesIndex, key: str) -> None:
        self._store, self._index = store, index
        self.data: dict[str, tuple[object, object]] = {}
        self.deletes: set[str] = set()
        for listed in avro.read_entries(store.read(key)):
            manifest = str(listed["manifest_path"]).removeprefix(f"{index.location}/")
            for file in clean.read_files(store, manifest):
                path = str(file["file_path"]).removeprefix(f"{index.location}/")
                if file["content"] == avro.DATA:
                    self.data[path] = (file["record_count"], file["file_size_in_bytes"])
                else:
                    self.deletes.add(path)

    def compare(
        self,
        catalogue: Catalogue,
        manifest: Manifest,
        table: IcebergTable,
        connection: engine.Connection,
    ) -> str:
        """Return what differs from the snapshot, "" if nothing does."""
        files = {file.key: file for file in catalogue.files(manifest, table.source)}
        expected = {key: (file.rows, file.bytes) for key, file in files.items()}
        if table.versioned:
            expected = {key: counts for key, counts in expected.items() if key in self.data}
        if self.data != expected:
            return "its data files are not those of the snapshot"
        if not table.versioned:
            return "it has deletes" if self.deletes else ""
        dead = [str(self._store.local(f.key)) for f in catalogue.files(manifest, "dead")]
        local = [str(self._store.local(key)) for key in files]
        wanted = _count_expected(connection, local, dead, table)
        shown = self._count_shown(connection)
        if wanted != shown:
            return f"it shows {shown[0]:,} rows, expected {wanted[0]:,} (or others)"
        return ""

    def _count_shown(self, connection: engine.Connection) -> tuple[int, int]:
        """Return number and digest of the rows that an engine sees."""
        if not self.data:
            return 0, 0
        connection.execute("CREATE OR REPLACE TABLE hidden_rows (path VARCHAR, pos BIGINT)")
        connection.execute("CREATE OR REPLACE TABLE local_files (path VARCHAR, local VARCHAR)")
        local = {key: str(self._store.local(key)) for key in self.data}
        connection.execute(
            "INSERT INTO local_files SELECT unnest($paths::VARCHAR[]), unnest($local::VARCHAR[])",
            {
                "paths": [f"{self._index.location}/{key}" for key in local],
                "local": [*local.values()],
            },
        )
        with engine.reading(f"the deletes below {FOLDER}"):
            if self.deletes:
                paths = [str(self._store.local(key)) for key in self.deletes]
                connection.execute(_HIDDEN, {"deletes": paths})
            return _fetch(connection, _SHOWN, [*local.values()])


def _count_expected(
    connection: engine.Connection, files: list[str], dead: list[str], table: IcebergTable
) -> tuple[int, int]:
    """Return number and digest of the rows that the snapshot lists for the table."""
    connection.execute("CREATE OR REPLACE TABLE superseded_rows (position BIGINT)")
    with engine.reading("the records"):
        if dead:
            connection.execute(
                f"INSERT INTO superseded_rows SELECT position FROM {engine.table('$files')}",
                {"files": dead},
            )
        listed = "position NOT IN (SELECT position FROM superseded_rows)"
        if table.kinds:
            listed += f" AND NOT deleted AND kind IN {engine.texts(sorted(table.kinds))}"
        return _fetch(connection, _EXPECTED.format(listed), files)


def _fetch(connection: engine.Connection, sql: str, files: list[str]) -> tuple[int, int]:
    if not files:
        return 0, 0
    count, digest = connection.execute(sql, {"files": files}).fetchall()[0]
    return int(count), int(digest)
