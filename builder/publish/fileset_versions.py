"""Selection of the result that determines a dataset's item, among several results.

Results are applied in order, each to the state that the earlier ones left. An older version never
replaces a newer one (builder.filesets.version_order). If two versions cannot be compared, the later
result wins. There is one exception: that another version is still archived changes nothing. The
removal of one version does not affect another version.
"""

from builder.filesets.entry import DELETE, LEAVE
from functions.database import engine

# Consecutive results for one version are one step, however many requests there were.
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
# `onward` is true if the listed version was older.
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
"""The datasets that the results list and that no result reports as gone."""


def offer(connection: engine.Connection) -> None:
    """Make `offered` of the tables `resolved` and `old`: the one result that changes each item.

    An item that no result changes has no row. Also makes `steps`, which LISTED reads.
    """
    connection.execute(_STEPS)
    connection.execute(_OFFERED)
