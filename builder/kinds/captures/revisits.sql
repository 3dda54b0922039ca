-- name: changed_originals
CREATE TABLE changed_originals AS
SELECT DISTINCT key, url, moment FROM ({new_keys}) UNION SELECT key, url, moment FROM ({old_keys})

-- name: affected_positions
-- Published revisits that an added, changed or deleted original can affect.
CREATE TABLE affected_positions AS
WITH met AS MATERIALIZED (
    SELECT * FROM {files} WHERE key IN (SELECT key FROM changed_originals)),
loose AS (SELECT * FROM met WHERE goal IS NULL),
tight AS (SELECT * FROM met WHERE goal IS NOT NULL),
marked AS (
    SELECT t.*, a.moment AS last
    FROM (SELECT * FROM tight WHERE url IS NOT NULL) t
    ASOF LEFT JOIN (SELECT DISTINCT key, url, moment FROM changed_originals WHERE url IS NOT NULL) a
    ON t.key = a.key AND t.url = a.url AND t.moment >= a.moment),
plain AS (
    SELECT t.*, a.moment AS last
    FROM (SELECT * FROM tight WHERE url IS NULL) t
    ASOF LEFT JOIN (SELECT DISTINCT key, moment FROM changed_originals WHERE moment IS NOT NULL) a
    ON t.key = a.key AND t.moment >= a.moment)
SELECT DISTINCT position FROM (
    SELECT position FROM loose WHERE url IS NULL
    UNION ALL
    SELECT position FROM loose SEMI JOIN changed_originals USING (key, url)
    UNION ALL
    SELECT position FROM marked
    LEFT JOIN (SELECT key, url, min(moment) AS first FROM changed_originals GROUP BY ALL)
    USING (key, url)
    WHERE CASE WHEN goal <= moment THEN last >= goal ELSE first <= goal END
    UNION ALL
    SELECT position FROM plain
    LEFT JOIN (SELECT key, min(moment) AS first FROM changed_originals GROUP BY ALL) USING (key)
    WHERE CASE WHEN goal <= moment THEN last >= goal ELSE first <= goal END
) WHERE position NOT IN (SELECT position FROM superseded_versions)

-- name: affected_revisits
CREATE TABLE affected_revisits AS
SELECT {columns} FROM {files} r JOIN affected_positions USING (position) WHERE {revisit}

-- name: pending_revisits
CREATE TABLE pending_revisits AS
SELECT * REPLACE ({own_values}), list_concat(sets, left_sets) AS earlier, NULL::BIGINT AS old_position
FROM new_versions WHERE {revisit}
UNION ALL BY NAME
SELECT * EXCLUDE (position, sequence) REPLACE ({own_values}),
    list_concat(sets, left_sets) AS earlier, position AS old_position
FROM affected_revisits

-- name: resolved_revisits
CREATE TABLE resolved_revisits AS
SELECT * EXCLUDE (earlier), {left} AS left_sets FROM (
    SELECT p.* EXCLUDE (left_sets) REPLACE (
        {inherited},
        CASE WHEN {gets_sets} THEN list_sort(list_concat(p.sets, m.sets)) ELSE p.sets END AS sets,
        m.identifier AS refers_to,
        list_sort(list_filter([{inherited_names}, CASE WHEN {gets_sets} THEN 'sets' END],
            lambda name: name IS NOT NULL)) AS inherited)
    FROM pending_revisits p LEFT JOIN revisit_matches b USING (identifier)
    LEFT JOIN matched_originals m ON m.position = b.original)

-- name: changed_revisits
CREATE TABLE changed_revisits AS
SELECT o.position FROM resolved_revisits n JOIN affected_revisits o ON o.position = n.old_position
WHERE {differs}

-- name: new_versions
-- `intake_versions` must not contain revisits any more: they are in `prepared_versions` now.
CREATE OR REPLACE VIEW new_versions AS
SELECT * FROM intake_versions WHERE NOT ({revisit}) UNION ALL SELECT * FROM prepared_versions

-- name: prepared_versions
INSERT INTO prepared_versions BY NAME SELECT * EXCLUDE (old_position) FROM resolved_revisits
WHERE old_position IS NULL OR old_position IN (SELECT position FROM changed_revisits)

-- name: superseded_versions
INSERT INTO superseded_versions BY NAME SELECT {superseded} FROM affected_revisits
WHERE position IN (SELECT position FROM changed_revisits)

-- name: inheriting_revisits
-- Values of withdrawn originals that are still in versions of revisits.
CREATE TABLE inheriting_revisits AS
WITH held AS MATERIALIZED (SELECT * FROM {files} WHERE key IN (SELECT key FROM former_originals))
SELECT position FROM held
SEMI JOIN (SELECT key FROM former_originals WHERE moment IS NULL) USING (key)
UNION
SELECT position FROM held
SEMI JOIN (SELECT key, moment AS goal FROM former_originals WHERE moment IS NOT NULL)
USING (key, goal)

-- name: item_versions
INSERT INTO item_versions BY NAME
SELECT r.position, list_concat(sets, left_sets) AS sets
FROM {files} r JOIN inheriting_revisits USING (position)
WHERE refers_to IN (SELECT identifier FROM superseded_versions)
    AND r.position NOT IN (SELECT position FROM item_versions)
