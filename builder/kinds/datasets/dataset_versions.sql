-- name: version_results
-- One row for each result that tells of a version. A closing result without a version is about all
-- versions of its dataset. The removal of one version does not affect another version.
CREATE TABLE version_results AS
WITH versions AS (
    SELECT identifier, any_value(version) AS version, any_value(dataset) AS dataset,
        bool_or(stored) AS stored
    FROM (
        SELECT identifier, document ->> '$.version' AS version, {dataset} AS dataset,
            json_array_length(document, '$.files') > 0 AS stored
        FROM listed_versions WHERE NOT deleted
        UNION ALL
        SELECT identifier, version, dataset, hit FROM identified_results
        WHERE deed = '{list}' AND identifier IS NOT NULL
    )
    GROUP BY identifier
)
SELECT coalesce(v.identifier, r.identifier) AS identifier, kind, sets, document, updated, turn,
    hit AS stored, deed = '{delete}' AS gone, NOT hit AND status IN {closing} AS closing,
    status, detail
FROM identified_results r
LEFT JOIN versions v ON r.dataset = v.dataset AND r.version IS NULL
    AND r.status IN {closing} AND NOT r.hit
LEFT JOIN versions own ON own.identifier = coalesce(v.identifier, r.identifier)
WHERE deed != '{leave}' AND coalesce(v.identifier, r.identifier) IS NOT NULL
    AND (deed = '{delete}' AND v.identifier IS NULL AND r.known_version != own.version) IS NOT TRUE
    AND (hit OR status IN {closing} OR own.stored IS NOT TRUE)

-- name: decided_versions
-- Files stay once they are archived: a version that its platform closes keeps its document, with
-- `access` saying how and since when. `again` is false if it says what was said before.
CREATE TABLE decided_versions AS
WITH last AS (
    FROM version_results QUALIFY row_number() OVER (PARTITION BY identifier ORDER BY turn DESC) = 1
), whole AS (
    FROM version_results WHERE stored
    QUALIFY row_number() OVER (PARTITION BY identifier ORDER BY turn DESC) = 1
), since AS (
    SELECT r.identifier, min(updated) AS since, min_by(detail, r.turn) AS detail,
        any_value(o.turn) IS NULL AS always
    FROM version_results r
    LEFT JOIN (
        SELECT identifier, max(v.turn) AS turn FROM version_results v JOIN last USING (identifier)
        WHERE v.status != last.status OR v.stored GROUP BY ALL
    ) o USING (identifier)
    WHERE r.turn > coalesce(o.turn, 0)
    GROUP BY ALL
), based AS (
    SELECT l.*, o.document AS old_document, o.sets AS old_sets, o.left_sets AS old_left_sets,
        o.kind AS old_kind, o.deleted AS old_deleted, o.reason AS old_reason,
        o.position AS old_position, s.since, s.detail AS why,
        coalesce(always AND o.document ->> '$.access.status' = l.status, false) AS same,
        coalesce(w.document, o.document) AS basis, coalesce(w.kind, o.kind) AS basis_kind,
        coalesce(w.sets, list_filter(o.sets, lambda one: NOT starts_with(one, 'status:')
            OR one = 'status:' || (o.document ->> '$.status'))) AS basis_sets
    FROM last l LEFT JOIN whole w USING (identifier) LEFT JOIN since s USING (identifier)
    LEFT JOIN listed_versions o USING (identifier)
)
SELECT identifier, CASE WHEN closed THEN basis_kind ELSE kind END AS kind,
    CASE WHEN removed THEN coalesce(old_sets, basis_sets)
        WHEN closed THEN list_sort(list_distinct(list_append(basis_sets, 'status:' || status)))
        ELSE sets END AS sets,
    CASE WHEN removed THEN NULL WHEN closed AND same THEN old_document
        WHEN closed THEN json_merge_patch(basis, json_object('access', json_object('status', status,
            'since', strftime(since, '%Y-%m-%d'), 'reason', why)))::VARCHAR
        ELSE document END AS document,
    updated, removed AS deleted, old_document, old_kind, old_sets, old_left_sets, old_deleted,
    old_reason, old_position
FROM (
    SELECT *, gone AND $follow AS removed,
        closing AND (gone OR coalesce(json_array_length(basis, '$.files'), 0) > 0) AS closed
    FROM based
)
WHERE old_reason IS NULL
    AND identifier NOT IN (SELECT v.identifier FROM based v JOIN listed_versions o
        ON o.identifier = {dataset_of_v} WHERE v.old_position IS NULL AND o.reason IS NOT NULL)
    AND (gone AND (basis IS NULL OR old_position IS NULL AND $follow)) IS NOT TRUE

-- name: late_versions
SELECT count(*) FROM decided_versions WHERE old_position IS NOT NULL AND updated < $since

-- name: outdated_versions
-- Runs can arrive late, for example after a crash: a newer result for another URL may be published.
DELETE FROM decided_versions WHERE identifier IN (
    SELECT o.identifier FROM decided_versions o JOIN {results} r USING (identifier)
    WHERE r.updated > o.updated AND list_contains($telling, r.status))

-- name: altered_versions
-- Archived bytes never change. A file at the same place with another digest than was published was
-- altered together with its record: the published version stays. Only what a run has fetched since,
-- after the object was removed on purpose, replaces it, because the earlier bytes are gone.
CREATE TABLE altered_versions AS
SELECT DISTINCT n.identifier, n.file ->> '$.path' AS path, n.file ->> '$.key' AS key
FROM (SELECT identifier, unnest((document -> '$.files')::JSON[]) AS file FROM decided_versions
    WHERE NOT deleted AND old_position IS NOT NULL) n
JOIN (SELECT identifier, unnest((old_document -> '$.files')::JSON[]) AS file FROM decided_versions
    WHERE NOT old_deleted) o
ON n.identifier = o.identifier AND n.file ->> '$.path' = o.file ->> '$.path'
    AND n.file ->> '$.key' = o.file ->> '$.key'
    AND n.file ->> '$.sha256' != o.file ->> '$.sha256'
WHERE coalesce(n.file ->> '$.terminal_dt' <= o.file ->> '$.terminal_dt', true)
    OR n.identifier NOT IN (SELECT identifier FROM version_results
        WHERE stored AND status != 'success-existing')

-- name: refused_versions
DELETE FROM decided_versions WHERE identifier IN (SELECT identifier FROM altered_versions)

-- name: related_versions
-- The live versions of each dataset, with their neighbours. The first one has all others, so that
-- all are found by it. Only versions whose order can be compared have a relation.
CREATE TABLE related_versions AS
WITH live AS (
    SELECT identifier, {dataset} AS dataset, document, document ->> '$.version_order' AS place
    FROM (
        SELECT identifier, document FROM decided_versions WHERE NOT deleted
        UNION ALL
        SELECT identifier, document FROM listed_versions
        WHERE NOT deleted AND identifier NOT IN (SELECT identifier FROM decided_versions)
    )
), ordered AS (
    SELECT *, lag(identifier) OVER places AS earlier, lead(identifier) OVER places AS later
    FROM live WINDOW places AS (PARTITION BY dataset, left(place, 1) ORDER BY place, identifier)
)
SELECT a.identifier, to_json(list({
        'identifier': b.identifier, 'version': b.document ->> '$.version',
        'doi': b.document ->> '$.doi', 'url': b.document ->> '$.url',
        'relation': CASE WHEN left(a.place, 1) != left(b.place, 1) THEN NULL
            WHEN b.place < a.place THEN 'IsNewVersionOf'
            WHEN b.place > a.place THEN 'IsPreviousVersionOf' END
    } ORDER BY b.place, b.identifier)) AS versions
FROM ordered a JOIN live b ON a.dataset = b.dataset AND a.identifier != b.identifier
    AND (a.identifier = a.dataset OR b.identifier IN (a.earlier, a.later))
GROUP BY a.identifier

-- name: revised_filesets
CREATE TABLE revised_filesets AS
WITH told AS (
    SELECT * EXCLUDE (updated, document), CASE WHEN r.versions IS NOT NULL
            THEN json_merge_patch(document, json_object('versions', r.versions))::VARCHAR
        WHEN json_exists(document, '$.versions')
            THEN json_merge_patch(document, '{"versions": null}')::VARCHAR
        ELSE document END AS document
    FROM (
        SELECT * FROM decided_versions
        UNION ALL BY NAME
        SELECT identifier, document, document AS old_document, sets AS old_sets,
            left_sets AS old_left_sets, kind AS old_kind, false AS old_deleted,
            position AS old_position, false AS deleted, kind, sets
        FROM listed_versions
        WHERE NOT deleted AND identifier NOT IN (SELECT identifier FROM decided_versions)
    ) LEFT JOIN related_versions r USING (identifier)
)
SELECT identifier, kind, deleted, NULL::VARCHAR AS reason, sets,
    CASE WHEN old_position IS NULL THEN [] WHEN deleted OR old_sets = sets THEN old_left_sets
        ELSE {left} END AS left_sets,
    document, old_position
FROM told
WHERE CASE WHEN old_position IS NULL THEN NOT deleted WHEN deleted THEN NOT old_deleted
    ELSE old_deleted OR old_kind != kind OR old_sets != sets
        OR old_document IS DISTINCT FROM document END
