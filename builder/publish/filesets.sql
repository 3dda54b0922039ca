-- name: intake_results
-- The local names of a bucket's files do not give their order.
CREATE TABLE intake_results AS
SELECT * EXCLUDE (part, number, line, identity),
    'oai:' || $namespace || ':' || identity AS identifier,
    row_number() OVER (ORDER BY updated, number, line) AS turn
FROM {rows}
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)

-- name: stale_results
DELETE FROM intake_results g USING earlier_results a
WHERE a.ingest_type = g.ingest_type AND a.base_url = g.base_url AND a.updated > g.updated

-- name: identified_results
-- A result without a list may still be identified by its requested URL. A dataset that is gone is
-- identified by its earlier result: a tombstone may not give the id that all versions share.
CREATE TABLE identified_results AS
SELECT * EXCLUDE (before) REPLACE (
    if(deed = '{delete}', coalesce(before, identifier), coalesce(identifier, before)) AS identifier)
FROM (
    SELECT g.*,
        coalesce(last_value(g.identifier IGNORE NULLS) OVER earlier, a.identifier) AS before,
        coalesce(g.platform_version, last_value(g.platform_version IGNORE NULLS) OVER earlier,
            a.platform_version) AS known_version
    FROM intake_results g LEFT JOIN earlier_results a USING (ingest_type, base_url)
    WINDOW earlier AS (PARTITION BY g.ingest_type, g.base_url ORDER BY g.turn
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)

-- name: revised_filesets
CREATE TABLE revised_filesets AS
SELECT n.identifier, coalesce(n.kind, o.kind) AS kind, n.gone AS deleted, NULL::VARCHAR AS reason,
    if(n.gone, o.sets, n.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN n.gone OR o.sets = n.sets THEN o.left_sets
        ELSE {left} END AS left_sets,
    n.document, o.position AS old_position
FROM (SELECT *, deed = '{delete}' AS gone FROM decisive_results) n
LEFT JOIN listed_versions o USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN NOT n.gone WHEN o.reason IS NOT NULL THEN false
    WHEN n.gone THEN NOT o.deleted AND ({another}) IS NOT TRUE
    ELSE o.deleted OR o.kind != n.kind OR o.sets != n.sets
        OR o.document IS DISTINCT FROM n.document END

-- name: late_results
-- Runs can arrive late, for example after a crash: a newer result for another URL may be published.
SELECT count(*) FROM revised_filesets JOIN decisive_results USING (identifier)
WHERE old_position IS NOT NULL AND updated < $since

-- name: outdated_filesets
-- A later result for another version does not override a change to a newer version or a deletion.
DELETE FROM revised_filesets WHERE identifier IN (
    SELECT o.identifier FROM decisive_results o JOIN {results} r USING (identifier)
    WHERE r.updated > o.updated AND list_contains($telling, r.status)
        AND ((o.onward OR o.deed = '{delete}') AND r.platform_version != o.known_version)
            IS NOT TRUE)

-- name: prepared_versions
INSERT INTO prepared_versions BY NAME
SELECT identifier, kind, deleted, reason, sets, left_sets, document
FROM revised_filesets

-- name: superseded_versions
INSERT INTO superseded_versions BY NAME SELECT {superseded} FROM listed_versions
WHERE position IN (SELECT old_position FROM revised_filesets)

-- name: newest_results
CREATE TABLE newest_results AS
SELECT {result}, if(identifier IN (SELECT identifier FROM listed_versions UNION ALL
    SELECT identifier FROM revised_filesets), identifier, NULL) AS identifier
FROM (SELECT {result}, identifier, turn FROM identified_results
    UNION ALL SELECT {result}, identifier, 0 FROM earlier_results)
QUALIFY row_number() OVER (PARTITION BY ingest_type, base_url ORDER BY turn DESC) = 1
