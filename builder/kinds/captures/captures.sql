-- name: repeated_captures
-- Few identities share a hash by chance, so the exact search for repetitions reads only those.
CREATE TABLE repeated_captures AS
WITH suspect AS (
    SELECT hash(identity) AS hash FROM {intake} GROUP BY hash HAVING count(*) > 1
)
SELECT 'oai:' || $namespace || ':' || identity AS identifier FROM {intake}
WHERE hash(identity) IN (SELECT hash FROM suspect)
GROUP BY identity HAVING count(*) > 1

-- name: intake_captures
-- Rows that need no change are never copied: most rows are only read, sorted and written.
SELECT identifier, sets, {columns}
FROM (SELECT 'oai:' || getvariable('namespace') || ':' || identity AS identifier,
          * EXCLUDE (identity), NULL::VARCHAR AS refers_to, []::VARCHAR[] AS inherited
      FROM {intake})

-- name: referring_captures
-- In the intake refers_to_date is a record's id if it begins with <: of the original, or its own.
-- Mostly nothing is declared, and each reading of the view would pay for a join without rows.
CREATE VIEW intake_captures AS
SELECT c.* REPLACE (
    CASE WHEN warc_record_type = 'revisit' THEN coalesce({url}, refers_to_url) END AS refers_to_url,
    CASE WHEN starts_with(refers_to_date, '<') THEN {date}
    ELSE coalesce(refers_to_date, {date}) END AS refers_to_date)
FROM {captures}

-- name: capture_copies
CREATE TABLE capture_copies AS
SELECT identifier, row_number() OVER copy AS rank, list(sets) OVER copy AS lists,
    {described},
    {location}
FROM ({given}) LEFT JOIN intake_files USING (part)
WHERE identifier IN (SELECT identifier FROM repeated_captures)
WINDOW copy AS (
    PARTITION BY identifier
    ORDER BY content_length IS NULL, content_damaged IS NOT NULL,
        warc_record_type = 'revisit', warc_filename, warc_record_offset NULLS LAST, number DESC,
        file_row_number DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)

-- name: withdrawn_places
-- Locations of records of withdrawn items: the details of their faults must not be published.
CREATE TABLE withdrawn_places AS
SELECT DISTINCT warc_filename AS source, warc_record_offset AS place FROM ({given})
WHERE identifier IN (SELECT identifier FROM listed_versions WHERE reason IS NOT NULL)
