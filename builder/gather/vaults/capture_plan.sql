-- name: wanted
-- URLs that templates named, and those that their redirects lead to.
CREATE TABLE wanted AS
WITH RECURSIVE reached(url) AS (
    SELECT DISTINCT url FROM capture JOIN known ON known.id = url WHERE named
    UNION
    SELECT target FROM capture JOIN reached USING (url) WHERE target IS NOT NULL
)
SELECT url FROM reached

-- name: chosen
-- Captures of wanted URLs in order, without copies. Of a stretch of equal ones, the first and the
-- last count; redirects all do, because their targets may differ. `fresh`: the store knows of no
-- response as late; of bytes, if it is one with bytes.
CREATE TABLE chosen AS
WITH own AS (
    SELECT c.*, coalesce(k.named, false) AS named,
        coalesce(status, 200) IN (200, 304) AND flaw IS NULL AS good,
        concat_ws(' ', coalesce(status, 200), target,
            if(coalesce(status, 200) = 200, coalesce(flaw, declared, digest), NULL)) AS result,
        o.second AS last, if(k.had = o.tist, o.second, k.had) AS had,
        if(k.tried = o.tist, o.second, k.tried) AS tried
    FROM capture c JOIN wanted USING (url) LEFT JOIN known k ON k.id = c.url
        LEFT JOIN observed o ON o.id = c.url
    QUALIFY row_number() OVER (PARTITION BY c.url, c.second, result ORDER BY number) = 1
)
SELECT * EXCLUDE (last, had, tried), coalesce(second > last, true)
    AND coalesce(second > if(good OR target IS NOT NULL, had, tried), true) AS fresh
FROM own
WINDOW times AS (PARTITION BY url ORDER BY second, number)
QUALIFY target IS NOT NULL OR result IS DISTINCT FROM lag(result) OVER times
    OR result IS DISTINCT FROM lead(result) OVER times

-- name: linked
-- URLs on a redirect's way.
CREATE TABLE linked AS
SELECT url FROM chosen WHERE target IS NOT NULL
UNION SELECT target FROM chosen WHERE target IS NOT NULL

-- name: ways
SELECT number, url, second, target, named, fresh, result FROM chosen JOIN linked USING (url)
ORDER BY second, number

-- name: fetches
-- Each fetch of one capture, in the round after that of the URL's earlier one.
CREATE TABLE planned AS
SELECT url AS asked, [number] AS members,
    row_number() OVER (PARTITION BY url ORDER BY second, number) AS round
FROM chosen ANTI JOIN linked USING (url) WHERE named AND fresh

-- name: add
INSERT INTO planned
SELECT unnest($asked::VARCHAR[]), unnest($members::BIGINT[][]), unnest($round::BIGINT[])

-- name: originals
-- The capture with the bytes of each revisit: by digest, or else by the URL and date it refers to.
CREATE TABLE original AS
WITH body AS (
    SELECT number, url, second, unnest([digest, declared]) AS bytes FROM capture
    WHERE kind != 'revisit' AND status = 200 AND flaw IS NULL
)
SELECT r.number, coalesce(b.number, c.number) AS source
FROM chosen r LEFT JOIN body b ON b.bytes = r.digest
    LEFT JOIN capture c ON c.url = r.refers_url AND c.second = r.refers_at AND c.kind != 'revisit'
WHERE r.kind = 'revisit' AND coalesce(b.number, c.number) IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY r.number
    ORDER BY b.number IS NULL, b.url != r.url, abs(b.second - r.second), source) = 1

-- name: rounds
SELECT round, count(*) FROM planned GROUP BY round ORDER BY round

-- name: batch
SELECT asked, members FROM planned WHERE round = $round ORDER BY asked LIMIT $most OFFSET $start

-- name: captures
SELECT c.number, c.archive, c.place, c.requests, c.url, c.second, c.status, c.kind, c.digest, c.flaw,
    c.faults, c.fresh, s.archive, s.place
FROM chosen c LEFT JOIN original o USING (number) LEFT JOIN capture s ON s.number = o.source
WHERE list_contains($numbers::BIGINT[], c.number) ORDER BY c.archive, c.place

-- name: counts
SELECT (SELECT count(*) FROM capture ANTI JOIN wanted USING (url)),
    (SELECT count(*) FROM chosen WHERE named AND NOT fresh),
    (SELECT count(*) FROM capture SEMI JOIN wanted USING (url)) - (SELECT count(*) FROM chosen)
