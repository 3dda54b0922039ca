-- name: plain_lines
-- Lines of `chosen` as index_line makes them; Python makes those of requests other than GET, of
-- odd dates, of texts with escapes, and of URLs whose key is more than their lower case.
CREATE TABLE plain_lines AS
WITH parts AS (
    SELECT *, lower(regexp_extract(url, {host}, 1)) AS host, regexp_replace(url, {host}, '') AS rest,
        regexp_replace(left(fetch_date, 19), '[-:T]', '', 'g') AS stamp,
        CASE WHEN warc_record_type = 'revisit' THEN 'warc/revisit'
            ELSE coalesce(nullif(content_mime_type, ''), content_mime_detected) END AS mime
    FROM chosen WHERE url_bytes IS NULL AND fetch_method IS NULL AND fetch_body IS NULL
)
SELECT position, encode(concat(
    array_to_string(list_reverse(string_split(host, '.')), ','), ')', lower(rest), ' ', stamp,
    ' {"url": "', url, '"', ', "mime": "' || mime || '"', ', "status": "' || fetch_status || '"',
    ', "digest": "' || if(contains(content_digest, ':'), '', 'sha1:') || content_digest || '"',
    ', "redirect": "' || fetch_redirect || '"', ', "length": "' || warc_record_length || '"',
    ', "offset": "' || warc_record_offset || '"', ', "filename": "' || warc_filename || '"}' || chr(10)
)) AS line
FROM parts WHERE strlen(host) BETWEEN 1 AND 200 AND starts_with(rest, '/') AND warc_filename IS NOT NULL
    AND NOT regexp_matches(rest, '[^!-~]|[%&#"<>\\]|//|/[.(?]|(?i)sid=|sessionid|cfid=|.[/?]$')
    AND regexp_full_match(fetch_date, '\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.]\d+)?Z')
    AND regexp_full_match(
        concat(mime, content_digest, fetch_redirect, warc_filename), '[ !#-\[\]-~]*')
