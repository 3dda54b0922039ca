"""Comparison of the staged files with the store.

The table `step` says what became of each template that was read. `missing` has the templates that
were not found, and `vanished` sums them up for each archive. A loss needs proof, and many losses at
once are not believed.
"""

from collections.abc import Collection
from dataclasses import dataclass

from builder.obi.row import SOURCE, TEMPLATE
from builder.redif.staging import PREFIX
from functions.database import engine

SHARE, FEW = 5, 10
"""Templates of an archive that may vanish at once without approval: up to FEW, or one in SHARE."""

NEW, CHANGED, BACK, BACK_CHANGED, SAME = "new", "changed", "back", "back-changed", "same"
"""What became of a template: NEW, CHANGED and BACK_CHANGED ones have a new version."""
STORED = (NEW, CHANGED, BACK_CHANGED)

# Where each template was found last: as its version says, or elsewhere in a later run.
_STOOD = f"""
CREATE TABLE stood AS
SELECT o.id, o.key, o.digest, o.lost, o.home, coalesce(s.source, v.source) AS source
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
_MISSING = """
CREATE TABLE missing AS
SELECT o.id, o.key, o.home, f.state = 'html' AS hidden
FROM stood o ANTI JOIN winner w ON w.handle = o.id
LEFT JOIN staged_file f ON f.rel = o.source AND f.counts
WHERE o.lost IS NULL
"""
# An absent archive proves no loss, unless the operator accepts that it is gone. Nor do templates
# outside all archive folders (home NULL): nothing shows that all of them were read.
_VANISHED = """
CREATE TABLE vanished AS
SELECT home, missing, hidden, complete IS NOT NULL AS there,
    if(home IS NULL, NOT (clouded OR stray), coalesce(sound, NOT clouded)) AS acceptable,
    coalesce(complete, false)
        OR if(home IS NULL, $all, list_contains($closed::VARCHAR[], home)) AND acceptable AS proven,
    missing > $few AND missing * $share > present
        AND NOT ($all OR coalesce(list_contains($closed::VARCHAR[], home), false)) AS held
FROM (SELECT home, count(*) AS missing, count(*) FILTER (hidden IS TRUE) AS hidden
      FROM missing GROUP BY home)
JOIN (SELECT home AS own, count(*) AS present FROM stood WHERE lost IS NULL GROUP BY home)
    ON own IS NOT DISTINCT FROM home
LEFT JOIN folder USING (home),
    (SELECT coalesce(bool_or(home IS NULL), false) AS clouded,
        coalesce(bool_or(NOT contains(rel, '/')), false) AS stray FROM flaw WHERE hides)
"""
_LOST = """
CREATE TABLE lost AS SELECT id, key FROM missing
JOIN vanished v ON v.home IS NOT DISTINCT FROM missing.home
WHERE v.proven AND NOT v.held AND missing.hidden IS NOT TRUE
"""
_FILES = f"""
CREATE TABLE fresh AS
SELECT f.*, '{PREFIX}' || f.rel AS id FROM staged_file f
LEFT JOIN obi o ON o.kind = '{SOURCE}' AND o.id = '{PREFIX}' || f.rel
WHERE f.counts AND o.digest IS DISTINCT FROM f.sha256
"""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Archives whose losses are accepted, however many: all of them, or the named ones.

    For a named archive, losses are accepted even if its folder is absent or lacks its own template.
    `everything` also covers templates outside all archive folders.
    """

    everything: bool = False
    archives: Collection[str] = ()
    """Names of folders, in lower case."""


def can_be_named(archive: str) -> bool:
    """Return whether --accept-loss can name a folder: a code of three in lower case."""
    return len(archive) == 3 and archive.isascii() and archive.isalnum()


def compare(connection: engine.Connection, accepted: Acceptance) -> None:
    """Create `step`, `missing`, `vanished`, `lost` and `fresh` (files with new bytes).

    It needs the tables of staging.stage and of replay.fold. Raises StoreError.
    """
    values = {
        "few": FEW,
        "share": SHARE,
        "all": accepted.everything,
        "closed": list(accepted.archives),
    }
    with engine.reading("the read templates and the store"):
        for sql in (_STOOD, _STEPS, _MISSING):
            connection.execute(sql)
        connection.execute(_VANISHED, values)
        for sql in (_LOST, _FILES):
            connection.execute(sql)
