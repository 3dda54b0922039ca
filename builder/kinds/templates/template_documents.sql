-- name: gathered_files
-- A redirect that is newer than the last sight of the URL itself leads to the newest bytes.
CREATE TABLE gathered_files AS
WITH found AS (
    SELECT id FROM obi WHERE kind = '{kind}'
    UNION SELECT origin FROM redirect WHERE target_key IS NOT NULL
), named AS (
    SELECT DISTINCT r.handle, r.url, r.id
    FROM refipo r SEMI JOIN found USING (id)
    SEMI JOIN (FROM wanted_templates WHERE NOT lost) m ON m.handle = r.handle
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
)
SELECT handle, concat('{"{member}":{',
    string_agg(concat(to_json(url), ':', to_json(id)), ',' ORDER BY url), '}}') AS files
FROM held WHERE id IS NOT NULL GROUP BY handle

-- name: linked_document
-- Few documents have the member, so most are not parsed.
CASE WHEN g.files IS NOT NULL
    OR contains(d.document, '"{member}"') AND json_exists(d.document, '$.{member}')
THEN json_merge_patch(json_merge_patch(d.document, '{"{member}":null}'),
    coalesce(g.files, '{}'))::VARCHAR
ELSE d.document END
