-- name: template_documents
INSERT INTO template_documents SELECT d.id, list_sort(d.sets), d.document FROM ({documents}) d
JOIN wanted_templates m ON m.handle = d.id AND m.noted = $tist AND m.fresh AND NOT m.lost

-- name: published_documents
INSERT INTO template_documents SELECT m.handle, o.sets, o.document
FROM wanted_templates m JOIN listed_versions o USING (identifier)
WHERE NOT m.fresh AND NOT m.lost AND NOT o.deleted

-- name: linked_documents
-- A redirect that is newer than the last sight of the URL itself leads to the newest bytes.
WITH named AS (
    SELECT DISTINCT r.handle, r.url, r.id
    FROM refipo r JOIN template_documents USING (handle) WHERE r.id IS NOT NULL
), hops AS (
    SELECT origin, tist, target_key FROM redirect
    WHERE target_key IS NOT NULL AND origin IN (SELECT id FROM named)
    QUALIFY row_number() OVER (PARTITION BY origin ORDER BY tist DESC, target_key) = 1
), reached AS (
    SELECT h.origin, h.tist, min(v.id) AS id
    FROM hops h JOIN version v ON v.key = h.target_key AND v.kind = '{kind}' GROUP BY ALL
), held AS (
    SELECT n.handle, n.url,
        CASE WHEN h.id IS NULL OR o.seen >= h.tist THEN o.id ELSE h.id END AS id
    FROM named n LEFT JOIN obi o ON o.id = n.id AND o.kind = '{kind}'
    LEFT JOIN reached h ON h.origin = n.id
), gathered AS (
    SELECT handle, concat('{"{member}":{',
        string_agg(concat(to_json(url), ':', to_json(id)), ',' ORDER BY url), '}}') AS files
    FROM held WHERE id IS NOT NULL GROUP BY handle
)
UPDATE template_documents d
SET document = json_merge_patch(json_merge_patch(d.document, '{"{member}":null}'),
    coalesce(g.files, '{}'))::VARCHAR
FROM template_documents t LEFT JOIN gathered g USING (handle)
WHERE t.handle = d.handle AND (g.files IS NOT NULL OR json_exists(d.document, '$.{member}'))

-- name: revised_templates
CREATE TABLE revised_templates AS
SELECT m.identifier, m.lost AS deleted, NULL::VARCHAR AS reason,
    if(m.lost, o.sets, t.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN m.lost OR o.sets = t.sets THEN o.left_sets
        ELSE {left} END AS left_sets,
    t.document, o.position AS old_position
FROM wanted_templates m LEFT JOIN template_documents t USING (handle)
LEFT JOIN listed_versions o USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN t.handle IS NOT NULL
    ELSE o.reason IS NULL AND (o.deleted != m.lost OR NOT m.lost AND (
        o.sets != t.sets OR o.document IS DISTINCT FROM t.document)) END

-- name: prepared_versions
INSERT INTO prepared_versions BY NAME
SELECT identifier, '{kind}' AS kind, deleted, reason, sets, left_sets, document
FROM revised_templates

-- name: superseded_versions
INSERT INTO superseded_versions BY NAME SELECT {superseded} FROM listed_versions
WHERE position IN (SELECT old_position FROM revised_templates)
