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
SELECT set_spec, records, live FROM {sets_files};

CREATE OR REPLACE TEMP VIEW faults AS
SELECT * FROM {faults_files};

CREATE OR REPLACE TEMP VIEW sources AS
SELECT * FROM {sources_files};

CREATE OR REPLACE TEMP VIEW collections AS
SELECT identifier, datestamp, document ->> '$.set_spec' AS set_spec, document ->> '$.name' AS name,
    (document ->> '$.captures')::BIGINT AS captures, (document ->> '$.bytes')::BIGINT AS bytes,
    document ->> '$.first_date' AS first_date, document ->> '$.last_date' AS last_date, document
FROM records JOIN {documents_files} USING (identifier)
WHERE kind = 'collection' AND NOT deleted;

CREATE OR REPLACE TEMP VIEW tallies AS
SELECT * FROM {tallies_files};
