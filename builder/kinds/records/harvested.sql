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
-- The formats of the listed items. Ended ones have no digest.
CREATE TABLE listed_formats AS
WITH own AS (
    SELECT identifier, document FROM listed_versions WHERE kind = '{kind}' AND NOT deleted
        AND identifier IN (SELECT identifier FROM assigned_identifiers)
)
SELECT identifier, entry ->> '$.prefix' AS prefix, false AS ended, entry ->> '$.digest' AS digest
FROM (SELECT identifier, unnest(from_json(document -> '$.records', '["JSON"]')) AS entry FROM own)
UNION ALL BY NAME
SELECT identifier, unnest(from_json(document -> '$.ended', '["VARCHAR"]')) AS prefix, true AS ended
FROM own

-- name: item_formats
-- In: decided_formats, listed_formats. Out: each format of each item, with the row of the intake
-- that is `fresh` if its entry may differ from the listed one. Formats without a sighting stay as
-- listed.
CREATE TABLE item_formats AS
SELECT identifier, prefix, coalesce(d.ended, l.ended) AS ended, l.ended AS was_ended,
    l.ended IS NOT DISTINCT FROM false AS listed, d.number, d.row,
    d.row IS NOT NULL AND d.digest IS DISTINCT FROM l.digest AS fresh
FROM (
    SELECT a.identifier, f.prefix, f.ended, r.number, r.row, r.digest
    FROM decided_formats f JOIN assigned_identifiers a USING (place, id)
    LEFT JOIN harvested_records r ON f.fresh AND NOT f.ended AND (r.place, r.id, r.prefix, r.list)
        = (f.place, f.id, f.prefix, f.list)
) d FULL JOIN listed_formats l USING (identifier, prefix)

-- name: served_fields
-- What of an entry is served, besides where and when it was harvested.
CREATE OR REPLACE TEMP MACRO served_fields(e) AS (e ->> '$.metadata', e ->> '$.namespace',
    e ->> '$.datestamp', json_extract(e, '$.about'), e ->> '$.origins[0].altered',
    e ->> '$.origins[0].identifier',
    from_json(json_extract(e, '$.origins'), '["JSON"]')[2:])

-- name: equal_entries
-- Digests of earlier versions of Sheaf were of the schema and the repository's address, too.
UPDATE item_formats SET fresh = false
FROM (
    SELECT f.identifier, f.prefix
    FROM item_formats f JOIN ({received}) i USING (number, row)
    JOIN ({listed}) l USING (identifier, prefix)
    WHERE f.fresh AND served_fields(i.entry) IS NOT DISTINCT FROM served_fields(l.entry)
) e
WHERE (item_formats.identifier, item_formats.prefix) = (e.identifier, e.prefix)

-- name: item_headers
-- The header of an item: that of its latest new record that is live, else the listed one. Sets whose
-- lists ended the item later are left out.
CREATE TABLE item_headers AS
WITH candidates AS (
    SELECT a.identifier, r.base_url, r.repository, r.id, r.specs, r.sets, r.run, r.prefix,
        if(f.id IS NULL, 2, 0) AS turn
    FROM harvested_records r JOIN assigned_identifiers a USING (place, id)
    LEFT JOIN decided_formats f ON f.fresh AND NOT f.ended
        AND (r.place, r.id, r.prefix, r.list) = (f.place, f.id, f.prefix, f.list)
    UNION ALL BY NAME
    SELECT identifier, document ->> '$.base_url' AS base_url,
        document ->> '$.repository' AS repository, document ->> '$.id' AS id,
        from_json(document -> '$.specs', '["VARCHAR"]') AS specs, sets, '' AS run, '' AS prefix,
        1 AS turn
    FROM listed_versions WHERE kind = '{kind}' AND NOT deleted
        AND identifier IN (SELECT identifier FROM assigned_identifiers)
),
chosen AS (
    FROM candidates
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
-- In: item_headers, item_formats. Out: the items, the beginnings of their documents, and whether a
-- format changed.
CREATE TABLE harvested_items AS
WITH formats AS (
    SELECT identifier, count(*) FILTER (NOT ended AND (fresh OR listed)) AS entries,
        list(prefix ORDER BY prefix) FILTER (ended AND was_ended IS NOT NULL) AS ended,
        bool_or(fresh OR ended IS DISTINCT FROM was_ended AND was_ended IS NOT NULL) AS differs
    FROM item_formats GROUP BY identifier
)
SELECT h.*, coalesce(entries, 0) AS entries, coalesce(entries, 0) = 0 AS gone,
    coalesce(differs, false) AS differs,
    gone AND identifier NOT IN (
        SELECT a.identifier FROM harvested_records JOIN assigned_identifiers a USING (place, id)
        WHERE deleted AND digest IS NULL) AS empty,
    '{"base_url":' || to_json(base_url) || ',"repository":' || to_json(repository) || ',"id":'
        || to_json(id) || ',"specs":' || to_json(specs)
        || if(ended IS NULL, '', ',"ended":' || to_json(ended)) || ',"records":[' AS head
FROM item_headers h LEFT JOIN formats USING (identifier)

-- name: revised_harvests
-- Neither another address nor another name of the repository changes an item.
CREATE TABLE revised_harvests AS
SELECT n.identifier, n.gone AS deleted, NULL::VARCHAR AS reason,
    if(n.gone, coalesce(o.sets, n.sets), n.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN n.gone OR o.sets = n.sets THEN o.left_sets
        ELSE {left} END AS left_sets,
    n.entries, n.head, o.position AS old_position
FROM harvested_items n LEFT JOIN listed_versions o USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN NOT n.empty WHEN o.reason IS NOT NULL THEN false
    WHEN n.gone THEN NOT o.deleted
    ELSE o.deleted OR n.differs OR (o.sets, from_json(o.document -> '$.specs', '["VARCHAR"]'),
        o.document ->> '$.id') IS DISTINCT FROM (n.sets, n.specs, n.id) END

-- name: received_entries
SELECT number, file_row_number AS row, entry
FROM read_parquet($files, filename = 'part', file_row_number = true, hive_partitioning = false,
    union_by_name = true)
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)

-- name: listed_entries
-- In: the files $records with the listed versions. Out: the entries of their documents.
SELECT identifier, entry ->> '$.prefix' AS prefix, entry::VARCHAR AS entry
FROM (
    SELECT o.identifier, unnest(from_json(r.document -> '$.records', '["JSON"]')) AS entry
    FROM {records} r JOIN listed_versions o USING (position)
    WHERE o.kind = '{kind}' AND NOT o.deleted)

-- name: harvested_rows
-- In: revised_harvests, item_formats. Out: the new versions. Few items have several formats, so only
-- theirs are in memory together.
WITH live AS (
    SELECT f.*, r.entries FROM item_formats f JOIN revised_harvests r USING (identifier)
    WHERE NOT r.deleted AND NOT f.ended
),
texts AS NOT MATERIALIZED (
    SELECT f.identifier, f.prefix, f.entries, i.entry
    FROM (FROM live WHERE fresh) f JOIN ({received}) i USING (number, row)
    UNION ALL
    SELECT f.identifier, f.prefix, f.entries, l.entry
    FROM (FROM live WHERE NOT fresh) f JOIN ({listed}) l USING (identifier, prefix)
)
SELECT identifier, '{kind}' AS kind, deleted, reason, sets, left_sets,
    head || entry || ']}' AS document, {others}
FROM (
    SELECT identifier, entry FROM texts WHERE entries = 1
    UNION ALL
    SELECT identifier, string_agg(entry, ',' ORDER BY prefix != 'oai_dc', prefix)
    FROM texts WHERE entries > 1 GROUP BY identifier
    UNION ALL
    SELECT identifier, NULL FROM revised_harvests WHERE deleted
) JOIN revised_harvests USING (identifier)

-- name: set_names
INSERT INTO repository_set_names SELECT set_spec, max(name)
FROM read_parquet($files, hive_partitioning = false) GROUP BY set_spec

-- name: forgotten_parts
-- The parts of harvests that were read, in the table of sources.
CREATE OR REPLACE TABLE forgotten_parts AS
SELECT * REPLACE (NULL::VARCHAR AS reading) FROM {files} WHERE starts_with(reading, $reading)
