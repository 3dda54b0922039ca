"""Staging: parsed rows as tables, and their comparison with the store.

Places follow from the files themselves. An archive's folder `aaa` contains `aaaarch.rdf`, and all
such folders lie side by side below the root of the tree. Files are named by their paths from the
root.

The table `step` has the change of each template that was read. `missing` has the templates that
were not found, and `vanished` counts them by archive. A loss needs proof, and many losses at
once are not believed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from builder.errors import UsageError
from builder.intake import loss
from builder.obi.content import SOURCE, TEMPLATE
from builder.snapshot.sql import Statements
from builder.sources.redif.parse import TABLES, path
from builder.sources.redif.spool import FileOrigin, Flaw, Segment
from functions.store import engine


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Archives whose losses are accepted, however many: all of them, or the named ones.

    For a named archive, losses are accepted even if its folder is absent or lacks its own template.
    `everything` also covers templates outside all archive folders.
    """

    everything: bool = False
    archives: Collection[str] = ()
    """Names of folders, in lower case."""

    @staticmethod
    def of(values: Sequence[str | None]) -> "Acceptance":
        """Return what the values of --accept-loss accept; None: all. Raises UsageError."""
        archives = [archive.lower().removeprefix("repec:") for archive in values if archive]
        for archive in archives:
            if not can_be_named(archive):
                raise UsageError(
                    f"--accept-loss {archive}: expected an archive such as aaa or RePEc:aaa; to "
                    "accept all losses, write --accept-loss after the sources"
                )
        return Acceptance(None in values, frozenset(archives))


def can_be_named(archive: str) -> bool:
    """Return whether a folder is an archive's: a code of three in lower case."""
    return len(archive) == 3 and archive.isascii() and archive.isalnum()


_SQL = Statements(__file__)
INCOMPLETE = "file-incomplete"
"""The code of a file that is not whole and hides templates."""
PREFIX = "RePEc-file:"
"""Prefix of the id of a ReDIF file as it was found; the path from the root follows."""

_FILES = """
CREATE TABLE staged_file AS
SELECT *, archives > 0 AND state IS NULL AND lower(rel) IN (
        home || '/' || home || 'arch.rdf', home || '/' || home || 'arch.redif') AS headed,
    row_number() OVER (PARTITION BY rel ORDER BY source, ordinal DESC) = 1 AS counts
FROM (SELECT *,
          if(rel[1] = '/' OR NOT contains(rel, '/'), NULL, lower(split_part(rel, '/', 1))) AS home
      FROM (SELECT *, if(starts_with(path, root), path[length(root) + 1:], '/' || path) AS rel
            FROM tree_file JOIN root USING (source)))
"""
ALL_READ = (
    "CREATE VIEW tree_file AS FROM parsed_file",
    "CREATE VIEW tree_template AS FROM parsed_template",
)
"""The statements where all files were read."""
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
          bool_or(headed) AS headed,
          NOT bool_or(source IN (SELECT source FROM flaw WHERE hides AND home IS NULL))
          AND home NOT IN (SELECT home FROM flaw WHERE hides AND home IS NOT NULL) AS sound
      FROM staged_file WHERE counts AND home IS NOT NULL GROUP BY home)
"""
_TEMPLATES = """
CREATE TABLE staged_template AS
SELECT t.* EXCLUDE (segment), t.segment, f.rel, f.home, f.modified, f.source,
    CASE WHEN f.home IS DISTINCT FROM string_split(handle, ':')[2] THEN 0
         WHEN len(string_split(handle, ':')) <= 3 THEN 1 + (len(string_split(rel, '/')) = 2)::INT
         WHEN lower(split_part(rel, '/', 2)) = string_split(handle, ':')[3] THEN 2
         ELSE 1 END AS proper
FROM tree_template t JOIN staged_file f USING (ordinal) WHERE f.counts
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
_CANDIDATES = """
SELECT DISTINCT source, path FROM tree_file
WHERE regexp_matches(path, 'arch[.](rdf|redif)$', 'i') AND string_split(lower(path), '/')[-1] IN (
    string_split(lower(path), '/')[-2] || 'arch.rdf',
    string_split(lower(path), '/')[-2] || 'arch.redif')
"""

NEW, CHANGED, BACK, BACK_CHANGED, SAME = "new", "changed", "back", "back-changed", "same"
"""What became of a template: NEW, CHANGED and BACK_CHANGED ones have a new version."""
STORED = (NEW, CHANGED, BACK_CHANGED)

# Where each template was found last: as its version says, or elsewhere in a later run.
_STOOD = f"""
CREATE TABLE stood AS
SELECT o.id, o.key, o.digest, o.lost, o.home, v.bytes, coalesce(s.source, v.source) AS source
FROM obi o JOIN version v ON v.id = o.id AND v.kind = o.kind AND v.tist = o.noted
LEFT JOIN (
    SELECT id, tist, source FROM seen JOIN (
        SELECT id, kind, max(tist) AS tist FROM seen
        WHERE kind = '{TEMPLATE}' AND source IS NOT NULL GROUP BY id, kind) USING (id, kind, tist)
) s ON s.id = o.id AND s.tist >= o.noted
WHERE o.kind = '{TEMPLATE}'
"""
_STEPS = f"""
CREATE TABLE step AS
SELECT w.*, o.key AS old_key,
    o.home IS DISTINCT FROM w.home OR o.source IS DISTINCT FROM w.rel AS moved,
    CASE WHEN o.id IS NULL THEN '{NEW}'
         WHEN o.lost IS NULL AND o.digest = w.text_sha256 THEN '{SAME}'
         WHEN o.lost IS NULL THEN '{CHANGED}'
         WHEN o.digest = w.text_sha256 THEN '{BACK}'
         ELSE '{BACK_CHANGED}' END AS became
FROM winner w LEFT JOIN stood o ON o.id = w.handle
"""
# An absent archive proves no loss, unless the operator accepts that it is gone. Nor do templates
# outside all archive folders (home NULL): nothing shows that all of them were read.
_VANISHED = """
CREATE TABLE vanished AS
SELECT home, missing, hidden, complete IS NOT NULL AS there,
    if(home IS NULL, NOT (clouded OR stray),
        coalesce(sound, NOT clouded AND unread IS NULL)) AS acceptable,
    coalesce(complete, false)
        OR if(home IS NULL, $all, list_contains($closed::VARCHAR[], home)) AND acceptable AS proven,
    missing > $few AND missing * $share > present
        AND NOT ($all OR coalesce(list_contains($closed::VARCHAR[], home), false)) AS held
FROM (SELECT home, count(*) AS missing, count(*) FILTER (hidden) AS hidden
      FROM missing GROUP BY home)
JOIN (SELECT home AS own, count(*) AS present FROM stood WHERE lost IS NULL GROUP BY home)
    ON own IS NOT DISTINCT FROM home
LEFT JOIN folder USING (home)
LEFT JOIN (SELECT DISTINCT home, true AS unread FROM flaw WHERE hides) USING (home),
    (SELECT coalesce(bool_or(home IS NULL), false) AS clouded,
        coalesce(bool_or(NOT contains(rel, '/')), false) AS stray FROM flaw WHERE hides)
"""
_LOST = """
CREATE TABLE lost AS SELECT id, key FROM missing
JOIN vanished v ON v.home IS NOT DISTINCT FROM missing.home
WHERE v.proven AND NOT v.held AND NOT missing.hidden
"""
_FRESH = f"""
CREATE TABLE fresh AS
SELECT f.*, '{PREFIX}' || f.rel AS id FROM staged_file f
LEFT JOIN obi o ON o.kind = '{SOURCE}' AND o.id = '{PREFIX}' || f.rel
WHERE f.counts AND o.digest IS DISTINCT FROM f.sha256
"""
UNREAD = """
SELECT ordinal, source, path FROM staged_file
WHERE counts AND (segment IS NULL AND ordinal IN (SELECT ordinal FROM fresh)
    OR ordinal IN (SELECT ordinal FROM step WHERE segment IS NULL AND became IN ({})))
ORDER BY ordinal
""".format(", ".join(f"'{became}'" for became in STORED))
"""The query of the files that must be read whole after all."""


def stage(
    connection: engine.Connection,
    segments: Sequence[Segment],
    origins: Sequence[FileOrigin],
    flaws: Sequence[tuple[int, Flaw]],
    statements: Sequence[str] = ALL_READ,
    *,
    dropped: Sequence[int] = (),
) -> None:
    """Create the tables of the files that were read, and of known ones. Raises StoreError.

    The `statements` create `tree_file` and `tree_template` from the parsed tables. Parsed
    files with the ordinals `dropped` are left out.

    `staged_file` and `flaw` have the files and the faults for which files were left out. `folder`
    has the folders of archives. One is `sound` if no fault may hide files of it, and `complete` if
    it also has its own template. `winner` has the rows of `staged_template` that count: one for
    each handle. `staged_fault` has the faults within files.
    """
    with engine.reading("the read templates"):
        without = f"ordinal NOT IN ({', '.join(map(str, dropped))})" if dropped else "true"
        for table, columns in TABLES.items():
            paths = (str(path(segment.folder, table, segment.number)) for segment in segments)
            listed = ", ".join(map(engine.quote, paths))
            rows = f"FROM {engine.table(f'[{listed}]')}"
            if not segments:
                empty = ", ".join(f"NULL::{column.type} AS {column.name}" for column in columns)
                rows = f"SELECT {empty} WHERE false"
            connection.execute(f"CREATE VIEW parsed_{table} AS FROM ({rows}) WHERE {without}")
        _run(connection, statements)
        connection.execute("CREATE TABLE root (source INTEGER, root VARCHAR)")
        for number, origin in enumerate(origins):
            root = _root(connection, number, origin)
            connection.execute("INSERT INTO root VALUES ($1, $2)", [number, root])
        connection.execute(
            "CREATE TABLE found_flaw (source INTEGER, path VARCHAR, code VARCHAR, detail VARCHAR, "
            "hides BOOLEAN)"
        )
        if flaws:
            connection.executemany(
                "INSERT INTO found_flaw VALUES ($1, $2, $3, $4, $5)", [[n, *f] for n, f in flaws]
            )
        _run(connection, (_FILES, _FLAWS, _FOLDERS, _TEMPLATES, _WINNERS))
        connection.execute("CREATE TABLE staged_fault AS FROM parsed_fault")


def _run(connection: engine.Connection, statements: Sequence[str]) -> None:
    for sql in statements:
        connection.execute(sql)


def _root(connection: engine.Connection, source: int, origin: FileOrigin) -> str:
    """Return the part of a source's paths that is above the archives' folders."""
    rows = connection.execute(_CANDIDATES).fetchall()
    above = [path.split("/")[:-2] for number, path in rows if number == source]
    if above:
        parts = min(above, key=lambda parts: (len(parts), parts))
        return "".join(f"{part}/" for part in parts)
    # Without an archive's template, a folder named by three letters counts as an archive, and a
    # folder RePEc as the root.
    name = origin.path.resolve().name
    is_code = len(name) == 3 and name.isascii() and name.isalpha()
    root = f"{name}/" if origin.is_tree and not is_code else ""
    sql = "SELECT min(path) FROM tree_file WHERE source = $source"
    (first,) = connection.execute(sql, {"source": source}).fetchall()[0]
    head, slash, _ = str(first or "").removeprefix(root).partition("/")
    return f"{root}{head}/" if slash and head.lower() == "repec" else root


def compare(connection: engine.Connection, accepted: Acceptance) -> None:
    """Create `step`, `missing`, `vanished`, `lost` and `fresh` (files with new bytes).

    A source that is not wholly readable confirms no deletion: `missing.hider` is the broken file.
    Templates of such a file that seem to be the rest of others are in `doubt`, and do not count.

    It needs the tables of staging.stage and of replay.fold_objects. Raises StoreError.
    """
    values = {
        "few": loss.FEW,
        "share": loss.SHARE,
        "all": accepted.everything,
        "closed": list(accepted.archives),
    }
    with engine.reading("the read templates and the store"):
        missing = _SQL.get("missing")
        _run(connection, (_STOOD, missing))
        closed = {"closed": values["closed"]}
        connection.execute(_SQL.get("doubt"), closed)
        if connection.execute("FROM doubt LIMIT 1").fetchall():
            tables = ("staged_template", "winner")
            _run(connection, [_SQL.get("forget_doubt", table=table) for table in tables])
            _run(connection, [missing])
        _run(connection, (_SQL.get("broken"), _STEPS))
        names = {"kind": SOURCE, "prefix": PREFIX, "code": INCOMPLETE}
        quoted = {name: engine.quote(text) for name, text in names.items()}
        connection.execute(_SQL.get("hide", **quoted), closed)
        connection.execute(_VANISHED, values)
        _run(connection, (_LOST, _FRESH))
