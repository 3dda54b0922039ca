"""Offers: of several results for one dataset, the one that its item is to tell of.

They are taken in turn, and each is held against what the item tells by then. An older version
never takes a newer one back (builder.filesets.version_order). Where nothing tells,
the newer result counts, but that another version is still archived changes nothing. That one
version is gone says nothing of another.
"""

from builder.filesets.entry import DELETE, LEAVE
from functions.database import engine

# What came of one version with nothing between is one step: however often it was asked for.
_STEPS = f"""
CREATE TABLE steps AS
SELECT *, row_number() OVER (PARTITION BY identifier ORDER BY turn) AS step
FROM (
    SELECT identifier, max(turn) AS turn, bool_and(existing) AS existing,
        any_value(gone) AS gone, any_value(version) AS version,
        last(version_order ORDER BY turn) AS version_order
    FROM (
        SELECT *, count(*) FILTER (WHERE other) OVER same AS stretch
        FROM (
            SELECT *, lag(gone) OVER same IS DISTINCT FROM gone
                OR lag(version) OVER same IS DISTINCT FROM version AS other
            FROM (
                SELECT identifier, turn, deed = '{DELETE}' AS gone,
                    status = 'success-existing' AS existing,
                    if(deed = '{DELETE}', known_version, document ->> '$.version') AS version,
                    document ->> '$.version_order' AS version_order
                FROM resolved WHERE deed != '{LEAVE}' AND identifier IS NOT NULL
            )
            WINDOW same AS (PARTITION BY identifier ORDER BY turn)
        )
        WINDOW same AS (PARTITION BY identifier ORDER BY turn)
    )
    GROUP BY identifier, stretch
)
"""
_COMPARABLE = "split_part(s.version_order, ':', 1) = split_part(c.version_order, ':', 1)"
_REPLACES = f"""
CASE WHEN s.gone THEN c.living AND (s.version != c.version) IS NOT TRUE
    WHEN NOT c.living OR s.version IS NOT DISTINCT FROM c.version THEN true
    WHEN {_COMPARABLE} THEN s.version_order >= c.version_order
    ELSE NOT s.existing END
"""
# `onward` tells that what is listed was an older version.
_OFFERED = f"""
CREATE TABLE offered AS
WITH RECURSIVE course AS (
    SELECT identifier, 0 AS step, NULL::BIGINT AS turn, o.deleted IS false AS living,
        o.document ->> '$.version' AS version,
        o.document ->> '$.version_order' AS version_order
    FROM (SELECT DISTINCT identifier FROM steps) LEFT JOIN old o USING (identifier)
    UNION ALL
    SELECT identifier, step, if(replaces, turns, turn), if(replaces, NOT gone, living),
        if(replaces, versions, version), if(replaces, orders, version_order)
    FROM (
        SELECT c.identifier, s.step, c.turn, c.living, c.version, c.version_order, s.gone,
            s.turn AS turns, s.version AS versions, s.version_order AS orders,
            {_REPLACES} AS replaces
        FROM course c JOIN steps s ON s.identifier = c.identifier AND s.step = c.step + 1
    )
)
SELECT r.*, coalesce(o.deleted IS false AND {_COMPARABLE.replace("c.", "o.")}
    AND s.version_order > o.version_order, false) AS onward
FROM (
    FROM course QUALIFY row_number() OVER (PARTITION BY identifier ORDER BY step DESC) = 1
) s
JOIN resolved r USING (turn)
LEFT JOIN (
    SELECT identifier, deleted, document ->> '$.version_order' AS version_order FROM old
) o ON o.identifier = r.identifier
"""
LISTED = f"""
(SELECT identifier FROM steps WHERE NOT gone
    EXCEPT SELECT identifier FROM offered WHERE deed = '{DELETE}')
"""
"""The datasets that results list, and that none says to be gone."""


def offer(connection: engine.Connection) -> None:
    """Make `offered` of the tables `resolved` and `old`: the result of each item that is to change.

    One whose results all leave it as it is has none. Beside it `steps` is made, for LISTED.
    """
    connection.execute(_STEPS)
    connection.execute(_OFFERED)
