-- name: received_records
-- In: the intake's files, the earliest run's first. Out: the row that counts of each identifier.
CREATE TABLE received_records AS
SELECT identifier, deleted, sets, prefixes, digest, number, file_row_number AS row
FROM read_parquet($files, filename = 'part', file_row_number = true, hive_partitioning = false)
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)
QUALIFY row_number() OVER (
    PARTITION BY identifier ORDER BY number DESC, file_row_number DESC) = 1

-- name: revised_records
-- In: received_records, listed_versions. Out: what changes. A deletion without a digest is of an item
-- that the source no longer names: it deletes only what is listed.
CREATE TABLE revised_records AS
SELECT r.identifier, r.deleted, NULL::VARCHAR AS reason, r.number, r.row,
    if(r.deleted AND o.identifier IS NOT NULL, o.sets, r.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN r.deleted OR o.sets = r.sets THEN o.left_sets
        ELSE {left} END AS left_sets,
    list_sort(list_filter(list_distinct(list_concat(
        coalesce(from_json(o.document -> '$.records[*].prefix', '["VARCHAR"]'), []),
        coalesce(from_json(o.document -> '$.ended', '["VARCHAR"]'), []))),
        lambda p: NOT list_contains(r.prefixes, p))) AS ended,
    o.position AS old_position
FROM received_records r LEFT JOIN listed_versions o USING (identifier)
WHERE r.identifier NOT IN (SELECT identifier FROM prepared_versions)
    AND CASE WHEN o.identifier IS NULL THEN NOT r.deleted OR r.digest IS NOT NULL
        WHEN o.kind != '{kind}' OR o.reason IS NOT NULL THEN false
        WHEN r.deleted THEN NOT o.deleted
        ELSE o.deleted OR (o.document ->> '$.digest') IS DISTINCT FROM r.digest END

-- name: record_rows
-- In: revised_records. Out: the new versions, in the order of the intake, where their documents are.
SELECT number, row, identifier, '{kind}' AS kind, deleted, reason, sets, left_sets,
    if(deleted OR ended = [], '', '{"ended":' || to_json(ended) || ',') AS head
FROM revised_records ORDER BY number, row

-- name: table_formats
-- The latest recipe of each table, and the formats of all.
SELECT name, max_by(recipe, number) AS recipe,
    list(DISTINCT [prefix, schema, namespace]) FILTER (prefix IS NOT NULL) AS formats
FROM read_parquet($files, filename = 'part', hive_partitioning = false)
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)
GROUP BY name
