-- name: empty
-- States in `recent` replace those of `base`, the table in the store.
CREATE OR REPLACE TABLE recent ({typed});
CREATE OR REPLACE VIEW base AS FROM recent WHERE false;
CREATE OR REPLACE VIEW file AS
FROM recent UNION ALL BY NAME SELECT * FROM base ANTI JOIN recent USING (host, id)

-- name: listed
-- Times of changes, as sitemaps say.
CREATE OR REPLACE TABLE listed (id VARCHAR, changed BIGINT, source VARCHAR)

-- name: rebase
CREATE OR REPLACE VIEW base AS FROM read_parquet({path}, hive_partitioning = false);
DELETE FROM recent

-- name: merge
-- A file that new rows name gets a new state, from its old one and these rows.
CREATE OR REPLACE TABLE merged AS
WITH event AS (
    SELECT if(row = 'redirect', origin, id) AS file, * EXCLUDE (id),
        coalesce(row IN ('version', 'seen') OR (row = 'redirect' AND target_key IS NOT NULL),
            false) AS good,
        coalesce(row = 'failure' AND code IN {unreachable}, false) AS cut
    FROM logged WHERE if(row = 'redirect', origin, id) IS NOT NULL
),
news AS (
    SELECT file AS id,
        trim(regexp_extract(file, '^[a-z]+://(\[[^\]]*\]|[^/:?#]*)', 1), '[]') AS host,
        list(DISTINCT handle) FILTER (row = 'refipo') AS handles,
        bool_or(coalesce(lower(trim(format)) = 'application/pdf', false))
            FILTER (row = 'refipo') AS pdf,
        bool_or(restriction IS NOT NULL) FILTER (row = 'refipo') AS restricted,
        max(tist) FILTER (row != 'refipo') AS tried,
        max(tist) FILTER (good) AS had,
        max(tist) FILTER (good AND (row != 'seen' OR status IS NOT NULL)
            AND NOT list_contains({imports}, tist)) AS answered,
        max(tist) FILTER (good OR row = 'incidence' OR (row = 'failure' AND NOT cut)) AS heard,
        arg_max({'noted': tist, 'digest': from_hex(sha256)}, tist)
            FILTER (row = 'version') AS version,
        arg_max(what, tist) FILTER (row = 'incidence') AS what,
        arg_max({'etag': etag, 'last_modified': last_modified}, tist)
            FILTER (row IN ('version', 'seen')) AS validators,
        arg_max({'target': target, 'status': status, 'redirect': key}, tist)
            FILTER (row = 'redirect') AS way
    FROM event GROUP BY file
),
failed AS (
    SELECT e.file AS id,
        count(DISTINCT e.tist) FILTER (e.tist > coalesce(n.had, 0)) AS times,
        arg_max({'code': code, 'detail': coalesce(detail, '')}, e.tist)
            FILTER (e.tist > coalesce(n.had, 0)) AS newest,
        count(DISTINCT e.tist) FILTER (cut AND e.tist > coalesce(n.heard, 0)) AS unreached,
        min(e.tist) FILTER (cut AND e.tist > coalesce(n.heard, 0)) AS since
    FROM event e JOIN news n ON n.id = e.file WHERE row = 'failure' GROUP BY e.file
)
SELECT id, host,
    if(n.handles IS NULL, o.handles, list_sort(list_distinct(list_concat(n.handles, o.handles))))
        AS handles,
    if(n.pdf IS NULL, o.pdf, n.pdf OR coalesce(o.pdf, false)) AS pdf,
    if(n.restricted IS NULL, o.restricted, n.restricted OR coalesce(o.restricted, false))
        AS restricted,
    greatest(n.tried, o.tried) AS tried, greatest(n.had, o.had) AS had,
    greatest(n.answered, o.answered) AS answered,
    if(n.had IS NULL, coalesce(o.times, 0), 0) + coalesce(f.times, 0) AS times,
    coalesce(f.newest.code, if(n.had IS NULL, o.code, NULL)) AS code,
    coalesce(f.newest.detail, if(n.had IS NULL, o.detail, NULL)) AS detail,
    coalesce(n.version.noted, o.noted) AS noted,
    coalesce(n.version.digest, o.digest) AS digest,
    coalesce(if(n.what IS NULL, o.lost, n.what = 'deletion'), false) AS lost,
    if(n.validators IS NULL, o.etag, n.validators.etag) AS etag,
    if(n.validators IS NULL, o.last_modified, n.validators.last_modified) AS last_modified,
    if(n.heard IS NULL, coalesce(o.unreached, 0), 0) + coalesce(f.unreached, 0) AS unreached,
    if(n.heard IS NULL, coalesce(o.since, f.since), f.since) AS since,
    if(n.way IS NULL, o.target, n.way.target) AS target,
    if(n.way IS NULL, o.status, n.way.status) AS status,
    if(n.way IS NULL, o.redirect, n.way.redirect) AS redirect
FROM news n LEFT JOIN file o USING (host, id) LEFT JOIN failed f USING (id);
DELETE FROM recent WHERE id IN (SELECT id FROM merged);
INSERT INTO recent BY NAME FROM merged;
DROP TABLE merged

-- name: chosen
-- A file that was never tried is due, others after some time. `pause` is negative for a file that a
-- rule excludes.
-- `sure` are stored files that their own servers still had some intervals ago.
SELECT id, host, pdf, tried, answered, code, times, pause, etag, last_modified,
    coalesce(NOT $again AND noted IS NOT NULL AND NOT lost AND code IS NULL
        AND answered > $now - 6 * $interval, false) AS sure,
    pause >= 0 AND (tried IS NULL OR (tried < $begun AND ($again OR tried <= $now - $interval
        OR coalesce(list_contains($lifted::VARCHAR[], code || ' ' || detail), false)
        OR coalesce(list_contains($soon, code)
            AND tried <= $now - $retry * 2 ** least(times - 1, 16), false)))) AS due
FROM (SELECT *, {pause} AS pause FROM file WHERE restricted IS NOT NULL AND {condition})

-- name: work
SELECT host, count(*), count(*) FILTER (due), count(*) FILTER (code IS NOT NULL
    AND tried < $begun AND pause >= 0 AND NOT due), count(*) FILTER (pause < 0),
    max(pause) FILTER (due), count(*) FILTER (due AND sure)
FROM ({chosen}) GROUP BY host ORDER BY host

-- name: next
-- The first files of each host come first.
SELECT id, host, pdf, pause FROM (
    SELECT id, host, pdf, pause,
        row_number() OVER (PARTITION BY host ORDER BY tried NULLS FIRST, id) AS turn
    FROM ({chosen}) WHERE due AND list_contains($hosts::VARCHAR[], host)
    QUALIFY turn <= $depth)
ORDER BY turn, id LIMIT $most

-- name: unchanged
-- Due files that did not change since their server last answered, as their sitemaps say.
SELECT id, any_value(etag), any_value(last_modified), min(source)
FROM ({chosen}) JOIN listed USING (id) WHERE due AND sure GROUP BY id
HAVING max(changed) < any_value(answered) ORDER BY id LIMIT $most

-- name: refused
SELECT DISTINCT code, detail FROM file
WHERE list_contains($ours, code) AND detail IS NOT NULL AND {condition} ORDER BY ALL

-- name: states
SELECT id, noted, lower(hex(digest)), coalesce(lost, false), etag,
    last_modified, unreached, since, target, status, redirect
FROM file WHERE list_contains($hosts::VARCHAR[], host) AND list_contains($ids::VARCHAR[], id)

-- name: named
SELECT EXISTS (FROM file WHERE restricted IS NOT NULL AND {condition})

-- name: rows
SELECT {columns} FROM file ORDER BY host, id
