-- name: touched_templates
-- Published documents to which files are linked now, or others than before.
COPY (
    SELECT handle AS id, noted AS tist, sets, linked AS document
    FROM (
        SELECT m.handle, m.noted, d.sets, d.document, {linked} AS linked
        FROM {records} d JOIN listed_versions o USING (position)
        JOIN wanted_templates m ON m.identifier = o.identifier
        LEFT JOIN gathered_files g ON g.handle = m.handle
        WHERE NOT m.fresh AND NOT m.lost AND NOT o.deleted AND o.reason IS NULL
    ) WHERE linked != document
) TO {target} (FORMAT parquet, COMPRESSION lz4, ROW_GROUP_SIZE 8192)

-- name: compared_templates
-- Templates that are as a published run had them, but were lost meanwhile.
INSERT INTO compared_templates
SELECT m.handle, list_sort(d.sets) AS sets, md5({linked}) AS digest
FROM run_documents d JOIN wanted_templates m ON m.handle = d.id AND m.noted = d.tist
JOIN listed_versions o USING (identifier)
LEFT JOIN gathered_files g ON g.handle = m.handle
WHERE m.fresh AND NOT m.lost AND m.run <= $since AND NOT o.deleted

-- name: differing_templates
INSERT INTO differing_templates SELECT m.handle
FROM {records} r JOIN listed_versions o USING (position)
JOIN wanted_templates m ON m.identifier = o.identifier
JOIN compared_templates c ON c.handle = m.handle
WHERE o.sets != c.sets OR md5(r.document) IS DISTINCT FROM c.digest

-- name: revised_templates
CREATE TABLE revised_templates AS
SELECT row_number() OVER (ORDER BY identifier) AS number, m.identifier, m.handle, m.noted, m.fresh,
    m.lost AS deleted, o.sets AS old_sets, o.left_sets AS old_left_sets,
    o.position AS old_position
FROM wanted_templates m LEFT JOIN listed_versions o USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN m.fresh AND NOT m.lost
    ELSE o.reason IS NULL AND (m.lost AND NOT o.deleted OR NOT m.lost AND (
        m.fresh AND (o.deleted OR m.run > $since)
        OR m.handle IN (SELECT handle FROM differing_templates))) END

-- name: template_ranges
SELECT min(number), max(number), min(handle), max(handle) FROM revised_templates
GROUP BY (number - 1) // $rows ORDER BY 1

-- name: template_rows
SELECT k.identifier, '{kind}' AS kind, k.deleted, NULL::VARCHAR AS reason,
    if(k.deleted, k.old_sets, d.sets) AS sets,
    CASE WHEN k.old_position IS NULL THEN []
        WHEN k.deleted OR k.old_sets = d.sets THEN k.old_left_sets ELSE {left} END AS left_sets,
    if(k.fresh, {linked}, d.document) AS document, {others}
FROM (FROM revised_templates WHERE number BETWEEN $start AND $end) k
LEFT JOIN (
    SELECT id, tist, list_sort(sets) AS sets, document, true AS fresh FROM run_documents
    WHERE id BETWEEN $first AND $last
    UNION ALL
    SELECT id, tist, sets, document, false FROM {touched} WHERE id BETWEEN $first AND $last
) d ON d.id = k.handle AND d.tist = k.noted AND d.fresh = k.fresh AND NOT k.deleted
LEFT JOIN gathered_files g ON g.handle = k.handle
ORDER BY k.number

-- name: recovered_versions
INSERT INTO recovered_versions SELECT w.* REPLACE (false AS deleted, NULL AS reason,
    list_sort(d.sets) AS sets, {linked} AS document)
FROM withdrawn_items w JOIN wanted_templates m USING (identifier)
JOIN run_documents d ON d.id = m.handle AND d.tist = m.noted
LEFT JOIN gathered_files g ON g.handle = m.handle
WHERE m.fresh AND NOT m.lost
