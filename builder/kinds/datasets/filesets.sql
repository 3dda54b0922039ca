-- name: intake_results
-- `dataset` is the identifier of all versions, `identifier` that of this version. The local names of
-- a bucket's files do not give their order.
CREATE TABLE intake_results AS
SELECT * EXCLUDE (part, number, line, identity, version_identity),
    'oai:' || $namespace || ':' || coalesce(version_identity, identity) AS identifier,
    'oai:' || $namespace || ':' || identity AS dataset,
    coalesce(document ->> '$.version', platform_version) AS version,
    row_number() OVER (ORDER BY updated, number, line) AS turn
FROM {rows}
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)

-- name: stale_results
-- A result that comes late still counts for a version that the newer result is not about.
DELETE FROM intake_results g USING earlier_results a
WHERE a.ingest_type = g.ingest_type AND a.base_url = g.base_url AND a.updated > g.updated
    AND (g.version IS NULL OR a.platform_version IS NULL OR g.version = a.platform_version)

-- name: result_datasets
CREATE TABLE result_datasets AS
SELECT DISTINCT identifier FROM (
    SELECT identifier FROM intake_results UNION ALL SELECT dataset FROM intake_results
    UNION ALL SELECT identifier FROM earlier_results
    UNION ALL SELECT {dataset} FROM earlier_results)
WHERE identifier IS NOT NULL

-- name: sibling_versions
INSERT INTO result_datasets SELECT DISTINCT identifier FROM (
    SELECT unnest(document ->> '$.versions[*].identifier') AS identifier FROM listed_versions
    WHERE NOT deleted)
WHERE identifier NOT IN (FROM result_datasets)

-- name: identified_results
-- The version that was listed first has the dataset's own identifier. A result without a list may
-- still be identified by its requested URL: a tombstone may not give the id that all versions share.
CREATE TABLE identified_results AS
WITH first_versions AS (
    SELECT dataset, arg_min(version, turn) AS version FROM intake_results
    WHERE deed = '{list}' AND identifier NOT IN (SELECT identifier FROM listed_versions)
    GROUP BY dataset
), resolved AS (
    SELECT g.* REPLACE (if(g.version = coalesce(o.document ->> '$.version', f.version),
        g.dataset, g.identifier) AS identifier)
    FROM intake_results g LEFT JOIN first_versions f USING (dataset)
    LEFT JOIN listed_versions o ON o.identifier = g.dataset
)
SELECT * EXCLUDE (before) REPLACE (if(deed = '{delete}' AND identifier NOT IN (
        SELECT identifier FROM listed_versions UNION ALL
        SELECT identifier FROM resolved WHERE deed = '{list}' AND identifier IS NOT NULL),
    coalesce(before, identifier), coalesce(identifier, before)) AS identifier)
FROM (
    SELECT g.*,
        coalesce(last_value(g.identifier IGNORE NULLS) OVER earlier, a.identifier) AS before,
        coalesce(g.version, last_value(g.version IGNORE NULLS) OVER earlier,
            a.platform_version) AS known_version
    FROM resolved g LEFT JOIN earlier_results a USING (ingest_type, base_url)
    WINDOW earlier AS (PARTITION BY g.ingest_type, g.base_url ORDER BY g.turn
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)

-- name: newest_results
CREATE TABLE newest_results AS
SELECT {result}, if(identifier IN (SELECT identifier FROM listed_versions UNION ALL
    SELECT identifier FROM revised_filesets), identifier, NULL) AS identifier
FROM (SELECT {result}, identifier, turn FROM identified_results
    UNION ALL SELECT {result}, identifier, 0 FROM earlier_results)
QUALIFY row_number() OVER (PARTITION BY ingest_type, base_url ORDER BY updated DESC, turn DESC) = 1
