-- name: harvested_records
-- In: the intake's files. Out: the sighting of each list that counts, by rules 1 and 2, without its
-- entry, which is read again for what changed. Rows of Sheaf 0.2.0 lack the columns of lists and runs.
CREATE TABLE harvested_records AS
SELECT * EXCLUDE (part, entry, file_row_number, place, places, list, run),
    coalesce(place, {place}) AS place, coalesce(places, [{place}]) AS places,
    coalesce(list, '') AS list, coalesce(run, harvested) AS run, file_row_number AS row
FROM (
    FROM read_parquet($files, filename = 'part', file_row_number = true, hive_partitioning = false,
        union_by_name = true)
    UNION ALL BY NAME SELECT {lacking} WHERE false)
JOIN (SELECT unnest($files) AS part, unnest(range(len($files))) AS number) USING (part)
QUALIFY row_number() OVER (PARTITION BY coalesce(place, {place}), id, prefix, coalesce(list, '')
    ORDER BY coalesce(run, harvested) DESC, datestamp DESC, number DESC, file_row_number DESC) = 1

-- name: latest_sightings
-- In: harvested_records, earlier sightings. Out: one sighting of each record in each list (rule 2).
CREATE TABLE latest_sightings AS
SELECT * FROM (
    SELECT {columns}, true AS fresh FROM harvested_records
    UNION ALL SELECT {columns}, false FROM {earlier} WHERE id IN (SELECT id FROM harvested_records))
QUALIFY row_number() OVER (PARTITION BY place, id, prefix, list ORDER BY run DESC, fresh DESC) = 1

-- name: decided_formats
-- In: latest_sightings. Out: whether each record is ended, and the live sighting that counts.
CREATE TABLE decided_formats AS
SELECT place, id, prefix, bool_and(deleted) AS ended,
    max_by(list, run || ' ' || list) FILTER (NOT deleted) AS list,
    max_by(fresh, run || ' ' || list) FILTER (NOT deleted) AS fresh
FROM (
    SELECT * FROM latest_sightings
    QUALIFY list = ''
        OR run > coalesce(max(run) FILTER (list = '') OVER (PARTITION BY place, id, prefix), ''))
GROUP BY place, id, prefix

-- name: merged_sightings
SELECT {columns} FROM (
    SELECT *, row_number() OVER (PARTITION BY place, id, prefix, list ORDER BY run DESC) AS turn
    FROM ({rows}))
WHERE turn = 1 ORDER BY {order}
