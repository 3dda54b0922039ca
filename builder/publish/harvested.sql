-- name: harvested_records
-- The local names of a bucket's files do not give their order.
CREATE TABLE harvested_records AS
SELECT * EXCLUDE (part, number, file_row_number), {place} AS place
FROM read_parquet($files, filename = 'part', file_row_number = true, hive_partitioning = false)
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)
QUALIFY row_number() OVER (PARTITION BY {place}, id, prefix
    ORDER BY harvested DESC, number DESC, file_row_number DESC) = 1

-- name: harvested_identifiers
CREATE TABLE harvested_identifiers AS
SELECT identifier FROM harvested_records UNION SELECT other FROM harvested_records

-- name: assigned_identifiers
CREATE TABLE assigned_identifiers AS
SELECT place, id, if(others OR place != first_value(place) OVER (PARTITION BY identifier
    ORDER BY others, place), other, identifier) AS identifier
FROM (SELECT DISTINCT c.place, c.id, c.identifier, c.other,
        c.identifier != c.other AND {is_others} AS others
    FROM harvested_records c LEFT JOIN listed_versions o ON o.identifier = c.identifier
    LEFT JOIN listed_versions p ON p.identifier = c.other)

-- name: item_records
-- An incoming record equal to the listed one is not newer: the first harvest date is kept.
CREATE TABLE item_records AS
WITH listed AS (
    SELECT identifier, unnest(from_json(document -> '$.records', '["JSON"]')) AS entry
    FROM listed_versions WHERE kind = '{kind}' AND NOT deleted
),
every AS (
    SELECT o.identifier, prefix, deleted, datestamp, harvested, digest, entry, 1 AS fresh
    FROM harvested_records JOIN assigned_identifiers o USING (place, id)
    UNION ALL BY NAME
    SELECT identifier, entry ->> '$.prefix' AS prefix, false AS deleted,
        entry ->> '$.datestamp' AS datestamp, entry ->> '$.harvested' AS harvested,
        entry ->> '$.digest' AS digest, entry::VARCHAR AS entry, 0 AS fresh
    FROM listed
),
newest AS (
    SELECT *, first_value(digest) OVER one AS last FROM every
    WINDOW one AS (PARTITION BY identifier, prefix ORDER BY harvested DESC, fresh DESC)
)
SELECT * FROM newest
QUALIFY row_number() OVER (PARTITION BY identifier, prefix ORDER BY digest IS NOT DISTINCT FROM last
    DESC, fresh, harvested DESC) = 1

-- name: harvested_items
CREATE TABLE harvested_items AS
WITH said AS (
    SELECT identifier, base_url, repository, id, specs, sets FROM (
        SELECT o.identifier, base_url, repository, id, specs, sets, harvested, prefix
        FROM harvested_records JOIN assigned_identifiers o USING (place, id)
        UNION ALL BY NAME
        SELECT identifier, document ->> '$.base_url' AS base_url,
            document ->> '$.repository' AS repository, document ->> '$.id' AS id,
            from_json(document -> '$.specs', '["VARCHAR"]') AS specs, sets,
            list_max(from_json(document -> '$.records[*].harvested', '["VARCHAR"]')) AS harvested,
            NULL AS prefix
        FROM listed_versions WHERE kind = '{kind}' AND NOT deleted AND identifier IN (
            SELECT identifier FROM assigned_identifiers)
    )
    QUALIFY row_number() OVER (PARTITION BY identifier
        ORDER BY harvested DESC, prefix DESC NULLS LAST) = 1
),
gone AS (
    SELECT identifier, max(datestamp) AS since FROM item_records WHERE deleted GROUP BY identifier
),
kept AS (
    SELECT r.identifier, list(entry ORDER BY prefix != 'oai_dc', prefix) AS entries,
        list(digest ORDER BY prefix != 'oai_dc', prefix) AS digests
    FROM item_records r LEFT JOIN gone g USING (identifier)
    WHERE NOT r.deleted AND (g.since IS NULL OR r.datestamp > g.since) GROUP BY r.identifier
)
SELECT s.*, k.identifier IS NULL AS gone, digests,
    if(gone, NULL, '{"base_url":' || to_json(base_url) || ',"repository":' || to_json(repository)
        || ',"id":' || to_json(id) || ',"specs":' || to_json(specs)
        || ',"records":[' || array_to_string(entries, ',') || ']}') AS document
FROM said s LEFT JOIN kept k USING (identifier)

-- name: revised_harvests
CREATE TABLE revised_harvests AS
SELECT n.identifier, n.gone AS deleted, NULL::VARCHAR AS reason,
    if(n.gone, coalesce(o.sets, n.sets), n.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN n.gone OR o.sets = n.sets THEN o.left_sets
        ELSE {left} END AS left_sets,
    n.document, o.position AS old_position
FROM harvested_items n LEFT JOIN listed_versions o USING (identifier)
LEFT JOIN {told} t USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN true WHEN o.reason IS NOT NULL THEN false
    WHEN n.gone THEN NOT o.deleted
    ELSE o.deleted OR (o.sets, t.repository, t.base_url, t.id, t.digests, t.specs)
        IS DISTINCT FROM (n.sets, n.repository, n.base_url, n.id, n.digests, n.specs) END

-- name: prepared_versions
INSERT INTO prepared_versions BY NAME
SELECT identifier, '{kind}' AS kind, deleted, reason, sets, left_sets, document
FROM revised_harvests

-- name: superseded_versions
INSERT INTO superseded_versions BY NAME SELECT {superseded} FROM listed_versions
WHERE position IN (SELECT old_position FROM revised_harvests)

-- name: set_names
INSERT INTO repository_set_names SELECT set_spec, max(name)
FROM read_parquet($files, hive_partitioning = false) GROUP BY set_spec
