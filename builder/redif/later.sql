-- name: file
-- What was there at each time: the last version of a file, unless its archive had it no more.
CREATE TABLE file AS
WITH event AS (
    SELECT tist, row, rel, if(rel[1] = '/' OR NOT contains(rel, '/'), NULL,
            lower(split_part(rel, '/', 1))) AS home,
        {'modified': modified, 'bytes': bytes, 'sha256': sha256, 'pack': pack, 'start': start,
            'key': key} AS held
    FROM (SELECT *, id[{prefix} + 1:] AS rel FROM logged WHERE kind = '{kind}')
), last AS (
    SELECT s.tist, e.rel, any_value(e.home) AS home, arg_max(e.row, e.tist) AS row,
        arg_max(e.held, e.tist) FILTER (e.row = 'version') AS held
    FROM state s JOIN event e ON e.tist <= s.tist GROUP BY s.tist, e.rel
)
SELECT l.tist, l.rel, r.encodings, unnest(l.held)
FROM last l JOIN (FROM logged WHERE row = 'reading') r ON r.tist = l.tist
WHERE l.row != 'absent' AND l.held IS NOT NULL AND (l.home IS NULL OR EXISTS (
    FROM logged a WHERE a.row = 'archive' AND a.tist = l.tist AND a.home = l.home))

-- name: listed
CREATE TABLE needed AS
SELECT row_number() OVER (ORDER BY encodings, pack, start, key, rel, modified) - 1 AS ordinal, *
FROM (
    SELECT encodings, rel, modified, bytes, sha256, min(pack) AS pack,
        arg_min(start, pack) AS start, arg_min(key, coalesce(pack, '')) AS key
    FROM file GROUP BY encodings, rel, modified, bytes, sha256)

-- name: needed
SELECT ordinal, encodings, rel, modified, bytes, sha256, pack, start, key FROM needed
ORDER BY ordinal

-- name: chosen
SELECT f.tist, n.ordinal FROM file f JOIN needed n
    ON n.rel = f.rel AND n.sha256 = f.sha256 AND n.modified IS NOT DISTINCT FROM f.modified
    AND n.encodings = f.encodings
ORDER BY ALL

-- name: packed
SELECT sha256, min(pack) AS pack, arg_min(start, pack) AS start FROM logged
WHERE row = 'version' AND pack IS NOT NULL GROUP BY sha256

-- name: readings
SELECT tist, accepted, encodings FROM logged WHERE row = 'reading'

-- name: held
SELECT tist, map_from_entries(list((home, held))) FROM logged
WHERE row = 'archive' AND held > 0 GROUP BY tist

-- name: flaws
SELECT tist, source, code, detail,
    (source = '' OR source[1] = '/') AND tist IN (
        SELECT tist FROM logged WHERE row = 'archive' AND complete)
FROM logged WHERE row = 'fault' AND done = '{done}' AND tist IN (SELECT tist FROM state)
ORDER BY ALL

-- name: tree_file
CREATE TABLE tree_file AS SELECT p.* FROM parsed_file p
SEMI JOIN (FROM {chosen} WHERE tist = {time}) USING (ordinal)

-- name: tree_template
CREATE VIEW tree_template AS FROM parsed_template
WHERE ordinal IN (SELECT ordinal FROM tree_file)

-- name: old
CREATE VIEW old AS SELECT *, {subject} AS subject FROM logged

-- name: new
-- Files that a source had twice are not in the store, so faults of that kind stay as they are.
CREATE VIEW new AS SELECT *, {subject} AS subject FROM (
    SELECT * FROM ({new}) WHERE tist != {own} AND row != 'reading'
    UNION ALL BY NAME SELECT * EXCLUDE (run) FROM logged WHERE code = 'repeated-member')

-- name: own
CREATE VIEW own AS FROM ({new}) WHERE tist = {own}

-- name: differing
CREATE TABLE differing AS SELECT DISTINCT tist, row, subject FROM (
    (SELECT tist, row, subject, {columns} FROM old
        EXCEPT ALL SELECT tist, row, subject, {columns} FROM new)
    UNION ALL
    (SELECT tist, row, subject, {columns} FROM new
        EXCEPT ALL SELECT tist, row, subject, {columns} FROM old))

-- name: document
CREATE VIEW document AS FROM ({new})

-- name: inheriting
-- What a template inherits may differ although the template does not.
INSERT INTO differing
SELECT DISTINCT v.tist, 'version', v.id
FROM document n JOIN old v ON v.row = 'version' AND v.kind = '{kind}' AND v.id = n.id
    AND v.tist = n.tist
LEFT JOIN ({old}) o ON o.id = v.id AND o.tist = v.tist AND o.run = v.run
WHERE (o.document IS DISTINCT FROM n.document OR o.sets IS DISTINCT FROM n.sets) AND NOT EXISTS (
    FROM differing d WHERE d.tist = v.tist AND d.row = 'version' AND d.subject = v.id)

-- name: log
SELECT * EXCLUDE (tist) REPLACE ({own}::BIGINT AS own_tist) FROM own
UNION ALL BY NAME
SELECT * EXCLUDE (tist, subject) REPLACE (tist AS own_tist) FROM new
SEMI JOIN differing USING (tist, row, subject)
UNION ALL BY NAME
SELECT DISTINCT 'undone' AS row, row AS what, subject AS id, tist AS own_tist FROM old
SEMI JOIN differing USING (tist, row, subject)

-- name: told
SELECT id, sets, document, tist AS own_tist FROM document
WHERE tist = {own} OR (tist, id) IN (SELECT tist, subject FROM differing WHERE row = 'version')
