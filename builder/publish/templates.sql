-- name: template_documents
INSERT INTO template_documents SELECT d.id, list_sort(d.sets), d.document::VARCHAR
FROM read_json($file,
    columns = {id: 'VARCHAR', sets: 'VARCHAR[]', document: 'JSON'},
    format = 'newline_delimited', compression = 'gzip', hive_partitioning = false,
    maximum_object_size = {longest}) d
JOIN wanted_templates m ON m.handle = d.id AND m.noted = $tist AND NOT m.lost

-- name: revised_templates
CREATE TABLE revised_templates AS
SELECT m.identifier, m.lost AS deleted, NULL::VARCHAR AS reason,
    if(m.lost, o.sets, t.sets) AS sets,
    CASE WHEN o.identifier IS NULL THEN [] WHEN m.lost OR o.sets = t.sets THEN o.left_sets
        ELSE {left} END AS left_sets,
    t.document, o.position AS old_position
FROM wanted_templates m LEFT JOIN template_documents t USING (handle)
LEFT JOIN listed_versions o USING (identifier)
WHERE CASE WHEN o.identifier IS NULL THEN NOT m.lost
    ELSE o.reason IS NULL AND (o.deleted != m.lost OR NOT m.lost AND (
        o.sets != t.sets OR o.document IS DISTINCT FROM t.document)) END

-- name: prepared_versions
INSERT INTO prepared_versions BY NAME
SELECT identifier, '{kind}' AS kind, deleted, reason, sets, left_sets, document
FROM revised_templates

-- name: superseded_versions
INSERT INTO superseded_versions BY NAME SELECT {superseded} FROM listed_versions
WHERE position IN (SELECT old_position FROM revised_templates)
