-- Input: the intake's captures `{intake}`, published `{records}` and their rows of `{urls}`.
-- name: undated_revisits
-- Revisits that name no date. `unchanged` is the URL of those that name no payload either.
CREATE TABLE undated_revisits AS
SELECT identity, refers_to_url AS url, refers_to_date AS id, fetch_date AS date, {surt} AS surt,
    CASE WHEN content_digest IS NULL OR content_digest = '3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ'
    THEN refers_to_url END AS unchanged  -- that is the SHA-1 of no bytes
FROM {intake} WHERE warc_record_type = 'revisit'
    AND (starts_with(refers_to_date, '<') OR (refers_to_date IS NULL AND refers_to_url IS NOT NULL))

-- name: dated_originals
CREATE TABLE dated_originals AS
SELECT url, fetch_date AS date, refers_to_date AS id FROM {intake}
WHERE warc_record_type != 'revisit' AND fetch_time IS NOT NULL
    AND (refers_to_date IN (SELECT id FROM undated_revisits)
        OR (url IN (SELECT unchanged FROM undated_revisits) AND fetch_status IS DISTINCT FROM 206))

-- name: earlier_captures
CREATE TABLE earlier_captures AS
SELECT position FROM {urls} SEMI JOIN (FROM undated_revisits WHERE unchanged IS NOT NULL) USING (surt)

-- name: published_originals
INSERT INTO dated_originals SELECT url, fetch_date, NULL FROM {records}
WHERE position IN (FROM earlier_captures) AND {original} AND fetch_time IS NOT NULL
    AND fetch_status IS DISTINCT FROM 206 AND url IN (SELECT unchanged FROM undated_revisits)

-- name: declared_originals
CREATE TABLE declared_originals AS
SELECT DISTINCT ON (identifier) 'oai:' || $namespace || ':' || identity AS identifier,
    coalesce(i.url, r.url) AS url, coalesce(i.date, u.date) AS date
FROM undated_revisits r
LEFT JOIN (SELECT id, min(date) AS date, arg_min(url, date) AS url FROM dated_originals GROUP BY id) i
ON i.id = r.id
ASOF LEFT JOIN dated_originals u ON u.url = r.unchanged AND r.date >= u.date
ORDER BY ALL
