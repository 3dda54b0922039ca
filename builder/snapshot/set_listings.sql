-- name: item_groups
-- Items of a row group with the same sets are counted together: neighbours often share them.
CREATE TABLE item_groups AS
SELECT row_number() OVER () AS number, *, len(left_sets) > 0 OR
    list_unique(list_transform(sets, lambda s: split_part(s, ':', 1))) < len(sets) AS several
FROM (
    SELECT file_index, file_row_number // $group AS part, sequence, kind, deleted, sets, left_sets,
        count(*) AS size, min(position) AS first, max(position) AS last
    FROM {files} GROUP BY ALL
)

-- name: parent_sets
CREATE TABLE parent_sets AS
SELECT spec, unnest(list_transform(range(1, len(parts) + 1),
    lambda n: array_to_string(parts[:n], ':'))) AS listing
FROM (
    SELECT DISTINCT spec, string_split(spec, ':') AS parts FROM (
        SELECT unnest(list_concat(sets, left_sets)) AS spec FROM item_groups
        UNION ALL SELECT unnest(list_concat(sets, left_sets)) FROM superseded_versions)
)

-- name: set_cells
-- An item may be in two sets of one parent, but counts once there: such items are counted
-- separately. Row groups are numbered on from one file to the next.
CREATE TABLE set_cells AS
WITH bases AS (
    SELECT file_index, sum(parts) OVER (ORDER BY file_index)::BIGINT - parts AS base
    FROM (SELECT file_index, max(part) + 1 AS parts FROM item_groups GROUP BY file_index)
),
plain AS (
    SELECT file_index, part, sequence, kind, spec, sum(size) AS records,
        sum(if(deleted, 0, size)) AS live, min(first) AS first, max(last) AS last
    FROM (SELECT *, unnest(sets) AS spec FROM item_groups WHERE NOT several) GROUP BY ALL
),
several AS (
    SELECT file_index, part, sequence, kind, listing, number, size AS records, first, last,
        max(if(live, size, 0)) AS live
    FROM {several_items} JOIN parent_sets USING (spec) GROUP BY ALL
)
SELECT listing, $runs[file_index::BIGINT + 1]::BIGINT AS run,
    base + part AS cell, sequence, kind,
    sum(records)::BIGINT AS records, sum(live)::BIGINT AS live,
    min(first) AS first, max(last) AS last
FROM (
    SELECT listing, file_index, part, sequence, kind, records, live, first, last
    FROM plain JOIN parent_sets USING (spec)
    UNION ALL
    SELECT listing, file_index, part, sequence, kind, records, live, first, last FROM several
)
JOIN bases USING (file_index) GROUP BY ALL

-- name: set_spread
CREATE TABLE set_spread AS
SELECT listing, run, records, touched > $spread * ceil(records / $page) + $slack AS copied
FROM (SELECT listing, run, count(DISTINCT cell) AS touched, sum(records) AS records
      FROM set_cells GROUP BY listing, run)

-- name: set_ranges
CREATE TABLE set_ranges AS
WITH touched AS (
    SELECT listing, run, cell, min(first) AS first, max(last) AS last
    FROM set_cells JOIN set_spread USING (listing, run) WHERE NOT copied GROUP BY listing, run, cell
),
gaps AS (
    SELECT *, cell - lag(cell) OVER part > 1 AS gap FROM touched
    WINDOW part AS (PARTITION BY listing, run ORDER BY cell)
),
islands AS (
    SELECT *, count(*) FILTER (WHERE gap) OVER part AS island FROM gaps
    WINDOW part AS (PARTITION BY listing, run ORDER BY cell)
)
SELECT listing, min(first) AS first, max(last) AS last, false AS copied
FROM islands GROUP BY listing, run, island
UNION ALL
SELECT listing, min(first), max(last), true
FROM set_cells JOIN set_spread USING (listing, run) WHERE copied GROUP BY listing, run

-- name: set_counts
CREATE TABLE set_counts AS
SELECT listing, sequence, kind, sum(records)::BIGINT AS records, sum(live)::BIGINT AS live
FROM set_cells WHERE sequence = $sequence GROUP BY ALL
UNION ALL
SELECT listing, sequence, kind, -count(*), -count(*) FILTER (WHERE live)
FROM (SELECT listing, sequence, kind, position, bool_or(live) AS live
      FROM {superseded_sets} JOIN parent_sets USING (spec) GROUP BY ALL)
GROUP BY ALL

-- name: copied_records
SELECT listing, r.*
FROM {files} r
JOIN (
    SELECT DISTINCT listing, position
    FROM (SELECT position, unnest(sets) AS spec FROM {files}
          UNION ALL SELECT position, unnest(left_sets) FROM {files})
    JOIN parent_sets USING (spec) JOIN set_spread USING (listing) WHERE copied AND run = $run
) USING (position)

-- name: touched_files
SELECT DISTINCT home
FROM (SELECT listing FROM set_cells UNION SELECT listing FROM set_counts)
ASOF JOIN set_files ON listing >= first ORDER BY home

-- name: earlier_counts
INSERT INTO set_counts SELECT set_spec, c.sequence, c.kind, c.records, c.live
FROM (SELECT set_spec, unnest(counts) AS c FROM {sets})

-- name: earlier_sets
INSERT INTO earlier_sets SELECT set_spec, turns, name FROM {sets}

-- name: earlier_ranges
INSERT INTO set_ranges SELECT set_spec, r.first, r.last, r.copied
FROM (SELECT set_spec, unnest(ranges) AS r FROM {sets})
WHERE NOT EXISTS (SELECT 1 FROM rewritten_spans w WHERE r.first BETWEEN w.first AND w.last)

-- name: set_totals
-- An odd number of turns means that the set had live records before. A set that began without any
-- has its first publish twice; earlier versions of Sheaf wrote no turns.
CREATE TABLE set_totals AS
SELECT listing, live, name,
    CASE WHEN (live > 0) = (len(before) % 2 = 1) THEN before
    ELSE list_append(before, $sequence::INTEGER) END AS turns
FROM (
    SELECT listing, live, coalesce(known_set_names.name, earlier_sets.name) AS name,
        coalesce(turns, if(live > 0 AND began = $sequence, [], [began, began])) AS before
    FROM (SELECT listing, sum(live)::BIGINT AS live, min(sequence) AS began
          FROM set_counts GROUP BY listing)
    LEFT JOIN earlier_sets USING (listing) LEFT JOIN known_set_names USING (listing)
)
ORDER BY listing

-- name: known_set_names
-- The template of a series or archive gives the name of its set. A repository gives the names of
-- its sets, from which items were harvested (builder.kinds.records.harvested).
CREATE TABLE known_set_names AS
SELECT listing, max(name) AS name FROM (
    SELECT unnest(list_filter(sets, lambda s: NOT starts_with(s, 'type:'))) AS listing,
        document ->> '$.fields.name[0]' AS name
    FROM {files} WHERE sequence = $sequence AND kind = 'template' AND NOT deleted
        AND list_has_any(sets, ['type:series', 'type:archive'])
    UNION ALL FROM repository_set_names
) WHERE name IS NOT NULL GROUP BY listing

-- name: empty_sets
SELECT (SELECT count(*) FROM set_totals WHERE live = 0),
    (SELECT count(*) FROM earlier_sets WHERE coalesce(len(turns), 0) % 2 = 0)

-- name: set_parts
-- Sets of one home are divided evenly, so that a file that was just split has room.
SELECT home::BIGINT * 1000000 + number AS part, listing
FROM (
    SELECT *, unnest(range(files)) AS number
    FROM (
        SELECT home, min(place) AS first, count(*) AS size, ceil(count(*) / $most)::BIGINT AS files
        FROM (SELECT rowid AS place, listing FROM set_totals)
        ASOF JOIN set_files ON listing >= set_files.first GROUP BY home)
)
JOIN set_totals ON set_totals.rowid = first + ceil(number * size / files)::BIGINT
ORDER BY listing

-- name: set_rows
WITH listed AS (
    SELECT listing AS set_spec, sum(records)::BIGINT AS records, list_sort(list(
        {'sequence': sequence, 'kind': kind, 'records': records, 'live': live})) AS counts
    FROM (SELECT listing, sequence, kind, sum(records)::BIGINT AS records,
              sum(live)::BIGINT AS live
          FROM set_counts WHERE {within} GROUP BY ALL HAVING sum(records) > 0)
    GROUP BY listing
)
SELECT part, set_spec, records, live, counts, ranges, turns, name
FROM listed
JOIN (SELECT listing AS set_spec, live, turns, name FROM set_totals WHERE {within}) USING (set_spec)
JOIN (
    SELECT listing AS set_spec,
        list_sort(list({'first': first, 'last': last, 'copied': copied})) AS ranges
    FROM set_ranges WHERE {within} GROUP BY listing
) USING (set_spec)
ASOF JOIN (SELECT unnest($parts::BIGINT[]) AS part, unnest($firsts::VARCHAR[]) AS start)
    ON set_spec >= start
ORDER BY set_spec
