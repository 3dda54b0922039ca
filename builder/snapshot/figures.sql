-- name: capture_changes
-- Hosts are grouped with their domains first, so that domains are counted from few rows.
CREATE OR REPLACE TABLE capture_changes AS
WITH grouped AS MATERIALIZED (
    SELECT CASE 0 WHEN grouping(host) THEN 'host' WHEN grouping(month) THEN 'month'
        ELSE 'media_type' END AS facet, host, domain, month, media_type, status,
        sum(sign)::BIGINT AS captures, sum(sign * length)::BIGINT AS bytes
    FROM (
        SELECT sign, url_host_name AS host, url_host_registered_domain AS domain,
            left(fetch_date, 7) AS month, fetch_status AS status,
            coalesce(content_mime_type, content_mime_detected) AS media_type,
            coalesce(content_length, 0) AS length
        FROM ({versions})
    )
    GROUP BY GROUPING SETS ((host, domain), (month), (media_type, status))
)
SELECT facet, value, status, captures, bytes FROM (
    SELECT facet, host AS value, NULL::SMALLINT AS status, sum(captures)::BIGINT AS captures,
        sum(bytes)::BIGINT AS bytes
    FROM grouped WHERE facet = 'host' AND host IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT 'domain', domain, NULL, sum(captures)::BIGINT, sum(bytes)::BIGINT
    FROM grouped WHERE facet = 'host' AND domain IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT facet, coalesce(month, media_type, ''), status, captures, bytes
    FROM grouped WHERE facet != 'host'
)
WHERE captures != 0 OR bytes != 0

-- name: summed_changes
SELECT facet, if(facet = 'month', value, NULL) AS value, status, sum(captures)::BIGINT,
    sum(bytes)::BIGINT
FROM capture_changes GROUP BY ALL

-- name: count_files
CREATE OR REPLACE TABLE count_files AS
SELECT unnest($numbers::INTEGER[]) AS home, unnest($firsts::VARCHAR[]) AS first,
    unnest($lasts::VARCHAR[]) AS last

-- name: touched_files
-- The files in which a changed value belongs, and all others that hold rows of it.
SELECT home FROM (
    SELECT home FROM (SELECT value FROM capture_changes WHERE facet = $facet)
    ASOF JOIN count_files ON value >= first
    UNION
    SELECT home FROM count_files SEMI JOIN
        (SELECT value FROM capture_changes WHERE facet = $facet) ON value BETWEEN first AND last
) ORDER BY home

-- name: changed_counts
CREATE OR REPLACE TABLE changed_counts AS
SELECT home, value, status, sum(captures)::BIGINT AS captures, sum(bytes)::BIGINT AS bytes
FROM (
    SELECT value, status, captures, bytes FROM capture_changes WHERE facet = $facet
    UNION ALL
    SELECT {column}, {status}, captures, bytes FROM {files}
)
ASOF JOIN (FROM count_files WHERE list_contains($homes, home)) ON value >= first
GROUP BY ALL HAVING sum(captures) != 0

-- name: count_rows
-- Rows of one home are divided evenly, so that a file that was just split has room.
SELECT home::BIGINT * 1000000 + number * files // size AS part, value AS {column}, {status}
    captures, bytes
FROM (
    SELECT *, ceil(size / $most)::BIGINT AS files FROM (
        SELECT *, count(*) OVER (PARTITION BY home) AS size,
            row_number() OVER (PARTITION BY home ORDER BY value, status) - 1 AS number
        FROM changed_counts))
ORDER BY home, number

-- name: highest_counts
WITH totals AS (
    SELECT value FROM ({counts}) GROUP BY value ORDER BY sum(captures) DESC, value LIMIT $most
)
SELECT value, status, captures, bytes FROM ({counts}) SEMI JOIN totals USING (value)

-- name: version_changes
SELECT n.kind, n.deleted, o.kind, o.deleted, count(*)
FROM superseded_versions o JOIN new_versions n USING (identifier) GROUP BY ALL
