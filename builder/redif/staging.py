"""Staging: parsed rows as tables, with the place of each file in its archive.

Places follow from the files themselves. An archive's folder `aaa` contains `aaaarch.rdf`, and all
such folders lie side by side below the root of the tree. Files are named by their paths from the
root, whatever is above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.redif.fault import Flaw
from builder.redif.parse import TABLES, path
from builder.redif.spool import Segment
from functions.database import engine

PREFIX = "RePEc-file:"
"""Prefix of the id of a ReDIF file as it was found; the path from the root follows."""

_PARSED = engine.table("$files")
_FILES = f"""
CREATE TABLE staged_file AS
SELECT *, if(rel[1] = '/' OR NOT contains(rel, '/'), NULL, lower(split_part(rel, '/', 1))) AS home,
    row_number() OVER (PARTITION BY rel ORDER BY source, ordinal DESC) = 1 AS counts
FROM (SELECT *, if(starts_with(path, root), path[length(root) + 1:], '/' || path) AS rel
      FROM {_PARSED} JOIN root USING (source))
"""
_FLAWS = """
CREATE TABLE flaw AS
SELECT source, path, code, detail, hides, rel,
    if(rel = '' OR rel[1] = '/', NULL, lower(split_part(rel, '/', 1))) AS home
FROM (SELECT *, if(starts_with(path, root), path[length(root) + 1:], '/' || path) AS rel
      FROM found_flaw JOIN root USING (source))
"""
# A damaged tarball, or a folder that cannot be read at all, may hide any file.
_FOLDERS = """
CREATE TABLE folder AS
SELECT home, files, templates, sound, sound AND headed AS complete
FROM (SELECT home, count(*) AS files, sum(templates)::BIGINT AS templates,
          bool_or(archives > 0 AND lower(rel) IN (
              home || '/' || home || 'arch.rdf', home || '/' || home || 'arch.redif')) AS headed,
          NOT bool_or(source IN (SELECT source FROM flaw WHERE hides AND home IS NULL))
          AND home NOT IN (SELECT home FROM flaw WHERE hides AND home IS NOT NULL) AS sound
      FROM staged_file WHERE counts AND home IS NOT NULL GROUP BY home)
"""
_TEMPLATES = f"""
CREATE TABLE staged_template AS
SELECT t.* EXCLUDE (segment), t.segment, f.rel, f.home, f.modified, f.source,
    CASE WHEN f.home IS DISTINCT FROM string_split(handle, ':')[2] THEN 0
         WHEN len(string_split(handle, ':')) <= 3 THEN 1 + (len(string_split(rel, '/')) = 2)::INT
         WHEN lower(split_part(rel, '/', 2)) = string_split(handle, ':')[3] THEN 2
         ELSE 1 END AS proper
FROM {_PARSED} t JOIN staged_file f USING (ordinal) WHERE f.counts
"""
# Of templates with one handle, the one in its own folder counts; otherwise the first one.
_WINNERS = """
CREATE TABLE first AS
SELECT ordinal, place FROM (
    SELECT ordinal, place, row_number() OVER (
        PARTITION BY handle ORDER BY proper DESC, rel, place) AS number
    FROM staged_template WHERE handle IS NOT NULL) WHERE number = 1;
CREATE TABLE winner AS SELECT t.* FROM staged_template t SEMI JOIN first USING (ordinal, place);
DROP TABLE first
"""
_CANDIDATES = f"""
SELECT DISTINCT source, path FROM {_PARSED}
WHERE string_split(lower(path), '/')[-1] IN (
    string_split(lower(path), '/')[-2] || 'arch.rdf',
    string_split(lower(path), '/')[-2] || 'arch.redif')
"""


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """A source: a folder or a tarball; `label` is its name in messages."""

    path: Path
    label: str
    is_tree: bool


def stage(
    connection: engine.Connection,
    segments: Sequence[Segment],
    origins: Sequence[FileOrigin],
    flaws: Sequence[tuple[int, Flaw]],
) -> None:
    """Create the tables of the files that were read, from one segment or more. Raises StoreError.

    `staged_file` and `flaw` have the files and the faults for which files were left out. `folder`
    has the folders of archives. One is `sound` if no fault may hide files of it, and `complete` if
    it also has its own template. `winner` has the rows of `staged_template` that count: one for
    each handle. `staged_fault` has the faults within files.
    """
    files = {table: _paths(segments, table) for table in TABLES}
    with engine.reading("the read templates"):
        connection.execute("CREATE TABLE root (source INTEGER, root VARCHAR)")
        for number, origin in enumerate(origins):
            root = _root(connection, files["file"], number, origin)
            connection.execute("INSERT INTO root VALUES ($1, $2)", [number, root])
        connection.execute(
            "CREATE TABLE found_flaw (source INTEGER, path VARCHAR, code VARCHAR, detail VARCHAR, "
            "hides BOOLEAN)"
        )
        if flaws:
            connection.executemany(
                "INSERT INTO found_flaw VALUES ($1, $2, $3, $4, $5)", [[n, *f] for n, f in flaws]
            )
        connection.execute(_FILES, {"files": files["file"]})
        connection.execute(_FLAWS)
        connection.execute(_FOLDERS)
        connection.execute(_TEMPLATES, {"files": files["template"]})
        connection.execute(_WINNERS)
        connection.execute(
            f"CREATE TABLE staged_fault AS SELECT * FROM {_PARSED}",
            {"files": files["fault"]},
        )


def _paths(segments: Sequence[Segment], table: str) -> list[str]:
    return [str(path(segment.folder, table, segment.number)) for segment in segments]


def _root(
    connection: engine.Connection, files: Sequence[str], source: int, origin: FileOrigin
) -> str:
    """Return the part of a source's paths that is above the archives' folders."""
    rows = connection.execute(_CANDIDATES, {"files": list(files)}).fetchall()
    above = [path.split("/")[:-2] for number, path in rows if number == source]
    if above:
        parts = min(above, key=lambda parts: (len(parts), parts))
        return "".join(f"{part}/" for part in parts)
    # Without an archive's template, a folder named by three letters counts as an archive, and a
    # folder RePEc as the root.
    name = origin.path.resolve().name
    root = f"{name}/" if origin.is_tree and not _is_code(name) else ""
    sql = f"SELECT min(path) FROM {_PARSED} WHERE source = $source"
    (first,) = connection.execute(sql, {"files": list(files), "source": source}).fetchall()[0]
    head, slash, _ = str(first or "").removeprefix(root).partition("/")
    return f"{root}{head}/" if slash and head.lower() == "repec" else root


def _is_code(name: str) -> bool:
    return len(name) == 3 and name.isascii() and name.isalpha()
