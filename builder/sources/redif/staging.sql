-- name: missing
-- Templates of the store that were not read. `spot` is their file or, without it, their folder.
CREATE OR REPLACE TABLE missing AS
SELECT o.id, o.key, o.home, false AS hidden, NULL::VARCHAR AS hider,
    if(f.rel IS NULL, regexp_replace(o.source, '[^/]*$', ''), f.rel) AS spot
FROM stood o ANTI JOIN winner w ON w.handle = o.id
LEFT JOIN (SELECT rel FROM staged_file WHERE counts) f ON f.rel = o.source
WHERE o.lost IS NULL

-- name: doubt
-- Templates that a broken file seems to have instead of missing ones: with a handle that the end of
-- the file cuts off, or that goes on in the next line; or the last one, which became shorter.
CREATE TABLE doubt AS
SELECT DISTINCT ordinal, place, handle, rel FROM (
    SELECT *, unnest([rel, regexp_replace(rel, '[^/]*$', '')]) AS spot FROM (
        SELECT t.ordinal, t.place, t.handle, f.rel, t.place + t.length >= f.bytes AS ends,
            s.id IS NOT NULL AS stays,
            s.digest != t.text_sha256 AND t.bytes < s.bytes AND t.place = (
                SELECT max(place) FROM tree_template l WHERE l.ordinal = t.ordinal) AS shorter
        FROM staged_template t JOIN staged_file f USING (ordinal)
        LEFT JOIN stood s ON s.id = t.handle AND s.source = f.rel AND s.lost IS NULL
        WHERE coalesce(NOT list_contains($closed::VARCHAR[], t.home), true))
    WHERE shorter OR NOT stays AND (ends OR contains(handle, ' ')))
JOIN missing m USING (spot)
WHERE NOT contains(m.id, ' ') AND CASE WHEN stays THEN spot = rel
    ELSE ends AND starts_with(m.id, handle)
        OR contains(handle, ' ') AND starts_with(handle, m.id) END

-- name: forget_doubt
DELETE FROM {table} WHERE (ordinal, place) IN (SELECT (ordinal, place) FROM doubt)

-- name: hide
-- A file that is not whole may hide templates that it had. One that no template of the store is
-- from may hide those of files that its folder does not have any more, also in later runs: until
-- it has other bytes, or hides nothing.
UPDATE missing SET hidden = true, hider = h.hider
FROM (
    SELECT min(rel) AS hider, spot FROM (
        SELECT rel, rel AS spot FROM broken
        UNION ALL
        SELECT rel, regexp_replace(rel, '[^/]*$', '') FROM broken
        WHERE rel NOT IN (SELECT source FROM stood WHERE lost IS NULL AND source IS NOT NULL)
            OR rel IN (
                SELECT f.source FROM fault f JOIN obi o ON o.kind = {kind} AND o.id = {prefix} || rel
                WHERE f.code = {code} AND f.source = rel AND f.tist >= o.noted))
    GROUP BY spot) h
WHERE h.spot = missing.spot AND coalesce(NOT list_contains($closed::VARCHAR[], home), true)

-- name: broken
CREATE VIEW broken AS
SELECT rel FROM staged_file WHERE counts AND state IS NOT NULL UNION SELECT rel FROM doubt
