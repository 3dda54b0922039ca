-- name: result_steps
-- Consecutive results for one version are one step, however many requests there were.
CREATE TABLE result_steps AS
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
                SELECT identifier, turn, deed = '{delete}' AS gone,
                    status = 'success-existing' AS existing,
                    if(deed = '{delete}', known_version, document ->> '$.version') AS version,
                    document ->> '$.version_order' AS version_order
                FROM identified_results WHERE deed != '{leave}' AND identifier IS NOT NULL
            )
            WINDOW same AS (PARTITION BY identifier ORDER BY turn)
        )
        WINDOW same AS (PARTITION BY identifier ORDER BY turn)
    )
    GROUP BY identifier, stretch
)

-- name: decisive_results
-- `onward` is true if the listed version was older.
CREATE TABLE decisive_results AS
WITH RECURSIVE course AS (
    SELECT identifier, 0 AS step, NULL::BIGINT AS turn, o.deleted IS false AS living,
        o.document ->> '$.version' AS version,
        o.document ->> '$.version_order' AS version_order
    FROM (SELECT DISTINCT identifier FROM result_steps)
    LEFT JOIN listed_versions o USING (identifier)
    UNION ALL
    SELECT identifier, step, if(replaces, turns, turn), if(replaces, NOT gone, living),
        if(replaces, versions, version), if(replaces, orders, version_order)
    FROM (
        SELECT c.identifier, s.step, c.turn, c.living, c.version, c.version_order, s.gone,
            s.turn AS turns, s.version AS versions, s.version_order AS orders,
            {replaces} AS replaces
        FROM course c JOIN result_steps s ON s.identifier = c.identifier AND s.step = c.step + 1
    )
)
SELECT r.*, coalesce(o.deleted IS false AND {comparable}
    AND s.version_order > o.version_order, false) AS onward
FROM (
    FROM course QUALIFY row_number() OVER (PARTITION BY identifier ORDER BY step DESC) = 1
) s
JOIN identified_results r USING (turn)
LEFT JOIN (
    SELECT identifier, deleted, document ->> '$.version_order' AS version_order FROM listed_versions
) o ON o.identifier = r.identifier

-- name: compared_captures
CREATE TABLE compared_captures AS
SELECT position AS old_position, identifier, sets, {columns},
    CASE WHEN sets = published THEN left_sets
    ELSE {left} END AS left_sets,
    reason IS NULL AND (deleted OR {differs}) AS changed
FROM (SELECT *, {sets} AS sets, {chosen}
      FROM ({pairs}))
