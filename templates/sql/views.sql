-- Views of snapshot {snapshot}, in effect from {effective}.
-- Read this with DuckDB from the root of the store: duckdb -init snapshots/{snapshot}/views.sql
-- From elsewhere, name the root first: SET VARIABLE root = 's3://bucket/prefix/';
CREATE OR REPLACE TEMP VIEW snapshots AS
SELECT * FROM (VALUES {sequences}) AS t(sequence, datestamp, first_position, last_position, records)
WHERE sequence IS NOT NULL;

CREATE OR REPLACE TEMP VIEW records AS
SELECT r.*, s.datestamp
FROM {records_files} r JOIN snapshots s USING (sequence)
WHERE r.position NOT IN (SELECT position FROM {dead_files});

CREATE OR REPLACE TEMP VIEW captures AS
SELECT identifier, datestamp, sets, {capture_columns}
FROM records WHERE kind = 'capture' AND NOT deleted;

CREATE OR REPLACE TEMP VIEW sets AS
SELECT set_spec, name, records, live FROM {sets_files};

CREATE OR REPLACE TEMP VIEW words AS
SELECT DISTINCT rtrim(word, chr(1) || chr(2) || chr(3) || chr(4)) AS word,
    unnest(range(position, position + following + 1)) AS position FROM {words_files};

CREATE OR REPLACE TEMP VIEW faults AS
SELECT * FROM {faults_files};

CREATE OR REPLACE TEMP VIEW sources AS
SELECT * FROM {sources_files};

CREATE OR REPLACE TEMP VIEW collections AS
SELECT identifier, datestamp, d.document ->> '$.set_spec' AS set_spec, d.document ->> '$.name' AS name,
    (d.document ->> '$.captures')::BIGINT AS captures, (d.document ->> '$.bytes')::BIGINT AS bytes,
    d.document ->> '$.first_date' AS first_date, d.document ->> '$.last_date' AS last_date, d.document
FROM records r JOIN {documents_files} d USING (identifier)
WHERE kind = 'collection' AND NOT deleted;

-- The whole archive's rows, whose collection is empty, are counted when they are asked for.
CREATE OR REPLACE TEMP VIEW tallies AS
SELECT * FROM {tallies_files}
UNION ALL
SELECT '' AS collection,
    CASE 0 WHEN grouping(host) THEN 'host' WHEN grouping(media_type) THEN 'media_type'
        WHEN grouping(status) THEN 'status' ELSE 'day' END AS facet,
    CASE 0 WHEN grouping(host) THEN host WHEN grouping(media_type) THEN media_type
        WHEN grouping(status) THEN status ELSE day END AS value,
    count(*) AS captures, sum(bytes)::BIGINT AS bytes
FROM (
    SELECT coalesce(url_host_name, '') AS host, coalesce(content_mime_type, content_mime_detected, '') AS media_type,
        coalesce(fetch_status::VARCHAR, '') AS status, coalesce(left(fetch_date, 10), '') AS day,
        coalesce(content_length, 0) AS bytes
    FROM captures
) GROUP BY GROUPING SETS ((host), (media_type), (status), (day));

CREATE OR REPLACE TEMP VIEW templates AS
SELECT identifier, datestamp, sets, document ->> '$.handle' AS handle, document ->> '$.type' AS type,
    coalesce(document ->> '$.fields.title[0]', document ->> '$.fields.name[0]') AS title,
    (document ->> '$.valid')::BOOLEAN AS valid, (document ->> '$.tist')::BIGINT AS tist, document ->> '$.source' AS source, document
FROM records WHERE kind = 'template' AND NOT deleted;

CREATE OR REPLACE TEMP VIEW harvested AS
SELECT identifier, datestamp, sets, document ->> '$.base_url' AS base_url, document ->> '$.repository' AS repository,
    document ->> '$.id' AS id, document
FROM records WHERE kind = 'harvested' AND NOT deleted;

CREATE OR REPLACE TEMP VIEW own_records AS
SELECT identifier, datestamp, sets, document ->> '$.repository' AS repository, document ->> '$.id' AS id,
    document ->> '$.title' AS title, document ->> '$.date' AS date, document ->> '$.type' AS type,
    document ->> '$.url' AS url, document
FROM records WHERE kind = 'record' AND NOT deleted;

CREATE OR REPLACE TEMP VIEW obi AS
SELECT * FROM {obi_files};

CREATE OR REPLACE TEMP VIEW version AS
SELECT * FROM {version_files};

CREATE OR REPLACE TEMP VIEW checksum AS
SELECT * FROM {checksum_files};

CREATE OR REPLACE TEMP VIEW incidence AS
SELECT * FROM {incidence_files};

CREATE OR REPLACE TEMP VIEW refipo AS
SELECT * FROM {refipo_files};

CREATE OR REPLACE TEMP VIEW redirect AS
SELECT * FROM {redirect_files};

CREATE OR REPLACE TEMP VIEW failure AS
SELECT * FROM {failure_files};

CREATE OR REPLACE TEMP VIEW run AS
SELECT * REPLACE (counts::JSON AS counts) FROM {run_files};

CREATE OR REPLACE TEMP VIEW filesets AS
SELECT identifier, datestamp, sets, kind, document ->> '$.platform' AS platform, document ->> '$.host' AS host,
    document ->> '$.id' AS id, document ->> '$.version' AS version, document ->> '$.status' AS status,
    document ->> '$.access.status' AS access, document ->> '$.strategy' AS strategy, document ->> '$.title' AS title, document ->> '$.doi' AS doi,
    document ->> '$.url' AS url, document ->> '$.published' AS published,
    (document ->> '$.bytes')::BIGINT AS bytes, json_array_length(document, '$.files')::INTEGER AS files,
    json_array_length(document, '$.withheld')::INTEGER AS withheld, document
FROM records WHERE kind IN ('file', 'fileset') AND NOT deleted;

CREATE OR REPLACE TEMP VIEW files AS
SELECT * FROM {files_files};

CREATE OR REPLACE TEMP VIEW ingest_fileset_platform AS
SELECT * REPLACE (manifest::JSON AS manifest) FROM {ingest_fileset_platform_files};

CREATE OR REPLACE TEMP VIEW sightings AS
SELECT * FROM {sightings_files}
QUALIFY row_number() OVER (PARTITION BY id, place, prefix, list ORDER BY run DESC) = 1;

CREATE OR REPLACE TEMP VIEW origin_sets AS
SELECT * FROM {origin_sets_files};

CREATE OR REPLACE TEMP VIEW figures AS
SELECT * FROM {figures_files};

CREATE OR REPLACE TEMP VIEW publishes AS
SELECT p.*, s.datestamp FROM {publishes_files} p JOIN snapshots s USING (sequence) ORDER BY sequence, kind;

CREATE OR REPLACE TEMP VIEW hosts AS
SELECT * FROM {hosts_files};

CREATE OR REPLACE TEMP VIEW domains AS
SELECT * FROM {domains_files};

CREATE OR REPLACE TEMP VIEW media_types AS
SELECT * FROM {media_types_files};
