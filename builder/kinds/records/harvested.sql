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

-- name: listed_formats
-- The formats of the listed items. Ended ones have no entry.
CREATE TABLE listed_formats AS
WITH own AS (
    SELECT identifier, document FROM listed_versions WHERE kind = '{kind}' AND NOT deleted
        AND identifier IN (SELECT identifier FROM assigned_identifiers)
)
SELECT identifier, entry ->> '$.prefix' AS prefix, false AS ended, entry::VARCHAR AS entry
FROM (SELECT identifier, unnest(from_json(document -> '$.records', '["JSON"]')) AS entry FROM own)
UNION ALL BY NAME
SELECT identifier, unnest(from_json(document -> '$.ended', '["VARCHAR"]')) AS prefix, true AS ended
FROM own

-- name: item_formats
-- In: decided_formats, listed_formats. Out: each format of each item, with the row of the intake
-- that may have a new entry, and the listed one. Formats without a sighting stay as listed.
CREATE TABLE item_formats AS
SELECT identifier, prefix, coalesce(d.ended, l.ended) AS ended, l.ended AS was_ended,
    d.number, d.row, d.digest, l.entry AS listed,
    l.entry ->> '$.digest' AS listed_digest, NULL::VARCHAR AS entry
FROM (
    SELECT a.identifier, f.prefix, f.ended, r.number, r.row, r.digest
    FROM decided_formats f JOIN assigned_identifiers a USING (place, id)
    LEFT JOIN harvested_records r ON f.fresh AND NOT f.ended AND (r.place, r.id, r.prefix, r.list)
        = (f.place, f.id, f.prefix, f.list)
) d FULL JOIN listed_formats l USING (identifier, prefix)

-- name: new_entries
-- Only entries that may differ are read.
UPDATE item_formats SET entry = i.entry
FROM (
    SELECT number, file_row_number AS row, entry
    FROM read_parquet($files, filename = 'part', file_row_number = true, hive_partitioning = false,
        union_by_name = true)
    JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)
) i
WHERE (i.number, i.row) = (item_formats.number, item_formats.row)
    AND item_formats.digest IS DISTINCT FROM item_formats.listed_digest

-- name: equal_entries
-- Digests of earlier versions of Sheaf were of the schema and the repository's address, too.
UPDATE item_formats SET entry = NULL
WHERE entry IS NOT NULL AND listed IS NOT NULL AND {new} IS NOT DISTINCT FROM {listed}

-- name: item_headers
-- The header of an item: that of its latest new record that is live, else the listed one. Sets whose
-- lists ended the item later are left out.
CREATE TABLE item_headers AS
WITH told AS (
    SELECT a.identifier, r.base_url, r.repository, r.id, r.specs, r.sets, r.run, r.prefix, 0 AS turn
    FROM harvested_records r JOIN assigned_identifiers a USING (place, id)
    JOIN decided_formats f ON f.fresh AND NOT f.ended
        AND (r.place, r.id, r.prefix, r.list) = (f.place, f.id, f.prefix, f.list)
    UNION ALL BY NAME
    SELECT identifier, document ->> '$.base_url' AS base_url,
        document ->> '$.repository' AS repository, document ->> '$.id' AS id,
        from_json(document -> '$.specs', '["VARCHAR"]') AS specs, sets, '' AS run, '' AS prefix,
        1 AS turn
    FROM listed_versions WHERE kind = '{kind}' AND NOT deleted
    UNION ALL BY NAME
    SELECT a.identifier, base_url, repository, id, specs, sets, run, prefix, 2 AS turn
    FROM harvested_records JOIN assigned_identifiers a USING (place, id)
),
chosen AS (
    SELECT * FROM told WHERE identifier IN (SELECT identifier FROM assigned_identifiers)
    QUALIFY row_number() OVER (PARTITION BY identifier ORDER BY turn, run DESC, prefix DESC) = 1
),
left_lists AS (
    SELECT a.identifier, list(DISTINCT r.list) AS specs, list(DISTINCT r.list_set) AS sets
    FROM harvested_records r JOIN assigned_identifiers a USING (place, id)
    JOIN chosen c ON c.identifier = a.identifier
    WHERE r.deleted AND r.list != '' AND r.run > c.run GROUP BY a.identifier
)
SELECT identifier, base_url, repository, id,
    if(l.specs IS NULL, c.specs, list_filter(c.specs, lambda s: NOT list_contains(
        list_transform(l.specs, lambda x: s = x OR starts_with(s, x || ':')), true))) AS specs,
    if(l.sets IS NULL, c.sets, list_filter(c.sets, lambda s: NOT list_contains(
        list_transform(l.sets, lambda x: s = x OR starts_with(s, x || ':')), true))) AS sets
FROM chosen c LEFT JOIN left_lists l USING (identifier)

-- name: harvested_items
-- In: item_headers, item_formats. Out: the items, and whether a format changed.
CREATE TABLE harvested_items AS
WITH formats AS (
    SELECT identifier,
        list(coalesce(entry, listed) ORDER BY prefix != 'oai_dc', prefix)
            FILTER (NOT ended AND coalesce(entry, listed) IS NOT NULL) AS entries,
        list(prefix ORDER BY prefix) FILTER (ended AND was_ended IS NOT NULL) AS ended,
        bool_or(entry IS NOT NULL OR ended IS DISTINCT FROM was_ended AND was_ended IS NOT NULL)
            AS differs
    FROM item_formats GROUP BY identifier
)
SELECT h.*, entries IS NULL AS gone, coalesce(differs, false) AS differs,
    entries IS NULL AND identifier NOT IN (
        SELECT a.identifier FROM harvested_records JOIN assigned_identifiers a USING (place, id)
        WHERE deleted AND digest IS NULL) AS empty,
    if(entries IS NULL, NULL, '{"base_url":' || to_json(base_url) || ',"repository":'
        || to_json(repository) || ',"id":' || to_json(id) || ',"specs":' || to_json(specs)
        || if(ended IS NULL, '', ',"ended":' || to_json(ended))
        || ',"records":[' || array_to_string(entries, ',') || ']}') AS document
FROM item_headers h LEFT JOIN formats USING (identifier)

-- name: revised_harvests
-- Neither another address nor another name of the repository changes an item.
CREATE TABLE revised_harvests AS
SELECT n.identifier, n.gone AS deleted, NULL::VARCHAR AS reason,
    if(n.gone, coalesce(o.sets, n.sets), n.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN n.gone OR o.sets = n.sets THEN o.left_sets
        ELSE {left} END AS left_sets,
    n.document, o.position AS old_position
FROM harvested_items n LEFT JOIN listed_versions o USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN NOT n.empty WHEN o.reason IS NOT NULL THEN false
    WHEN n.gone THEN NOT o.deleted
    ELSE o.deleted OR n.differs OR (o.sets, from_json(o.document -> '$.specs', '["VARCHAR"]'),
        o.document ->> '$.id') IS DISTINCT FROM (n.sets, n.specs, n.id) END

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

-- name: forgotten_parts
-- The parts of harvests that were read, in the table of sources.
CREATE TABLE forgotten_parts AS SELECT * REPLACE (NULL::VARCHAR AS reading) FROM {files}
WHERE starts_with(reading, '{reading}')
