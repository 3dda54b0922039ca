-- name: scratch
-- The data files of the tables and their deletes, each with the snapshots from `began` until before
-- `ended` that show it.
CREATE TABLE lake_files (
    table_name VARCHAR, path VARCHAR, rows BIGINT, bytes BIGINT, began BIGINT, ended BIGINT
);
CREATE TABLE lake_deletes (
    table_name VARCHAR, data_path VARCHAR, path VARCHAR, rows BIGINT, bytes BIGINT, began BIGINT,
    ended BIGINT
);

-- name: load
INSERT INTO lake_files
SELECT table_name, f.path, record_count, file_size_bytes, f.begin_snapshot, f.end_snapshot
FROM earlier.ducklake_data_file f JOIN earlier.ducklake_table USING (table_id);
INSERT INTO lake_deletes
SELECT table_name, f.path, d.path, d.delete_count, d.file_size_bytes, d.begin_snapshot,
    d.end_snapshot
FROM earlier.ducklake_delete_file d JOIN earlier.ducklake_data_file f USING (data_file_id)
JOIN earlier.ducklake_table t ON t.table_id = d.table_id;

-- name: listed
CREATE OR REPLACE TABLE listed_files AS
SELECT unnest($table_name::VARCHAR[]) AS table_name, unnest($path::VARCHAR[]) AS path,
    unnest($rows::BIGINT[]) AS rows, unnest($bytes::BIGINT[]) AS bytes,
    unnest($delete_path::VARCHAR[]) AS delete_path, unnest($delete_rows::BIGINT[]) AS delete_rows,
    unnest($delete_bytes::BIGINT[]) AS delete_bytes

-- name: end_files
UPDATE lake_files SET ended = $snapshot WHERE ended IS NULL
AND (table_name, path) NOT IN (SELECT (table_name, path) FROM listed_files)

-- name: begin_files
INSERT INTO lake_files SELECT table_name, path, rows, bytes, $snapshot, NULL FROM listed_files
WHERE (table_name, path) NOT IN (SELECT (table_name, path) FROM lake_files WHERE ended IS NULL)

-- name: end_deletes
UPDATE lake_deletes SET ended = $snapshot WHERE ended IS NULL
AND (table_name, data_path, path) NOT IN (
    SELECT (table_name, path, delete_path) FROM listed_files WHERE delete_path IS NOT NULL)

-- name: begin_deletes
INSERT INTO lake_deletes
SELECT table_name, path, delete_path, delete_rows, delete_bytes, $snapshot, NULL FROM listed_files
WHERE delete_path IS NOT NULL AND (table_name, path, delete_path) NOT IN (
    SELECT (table_name, data_path, path) FROM lake_deletes WHERE ended IS NULL)

-- name: drop
DELETE FROM {table} WHERE NOT EXISTS (
    SELECT 1 FROM (SELECT unnest($kept::BIGINT[]) AS number)
    WHERE number >= began AND (ended IS NULL OR number < ended))

-- name: shown
SELECT f.table_name, f.path, d.path
FROM lake_files f LEFT JOIN lake_deletes d ON d.table_name = f.table_name
    AND d.data_path = f.path AND d.began <= $snapshot AND (d.ended IS NULL OR d.ended > $snapshot)
WHERE f.began <= $snapshot AND (f.ended IS NULL OR f.ended > $snapshot)

-- name: catalogue
-- All tables of DuckLake 1.0, which readers expect; most are empty.
-- https://ducklake.select/docs/stable/specification/tables/overview
CREATE TABLE lake.ducklake_metadata (
    key VARCHAR, value VARCHAR, scope VARCHAR, scope_id BIGINT
);
CREATE TABLE lake.ducklake_snapshot (
    snapshot_id BIGINT, snapshot_time TIMESTAMPTZ, schema_version BIGINT, next_catalog_id BIGINT,
    next_file_id BIGINT
);
CREATE TABLE lake.ducklake_snapshot_changes (
    snapshot_id BIGINT, changes_made VARCHAR, author VARCHAR, commit_message VARCHAR,
    commit_extra_info VARCHAR
);
CREATE TABLE lake.ducklake_schema (
    schema_id BIGINT, schema_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT,
    schema_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN
);
CREATE TABLE lake.ducklake_schema_versions (
    begin_snapshot BIGINT, schema_version BIGINT, table_id BIGINT
);
CREATE TABLE lake.ducklake_table (
    table_id BIGINT, table_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT,
    table_name VARCHAR, path VARCHAR, path_is_relative BOOLEAN
);
CREATE TABLE lake.ducklake_column (
    column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, table_id BIGINT,
    column_order BIGINT, column_name VARCHAR, column_type VARCHAR, initial_default VARCHAR,
    default_value VARCHAR, nulls_allowed BOOLEAN, parent_column BIGINT, default_value_type VARCHAR,
    default_value_dialect VARCHAR
);
CREATE TABLE lake.ducklake_column_mapping (mapping_id BIGINT, table_id BIGINT, type VARCHAR);
CREATE TABLE lake.ducklake_name_mapping (
    mapping_id BIGINT, column_id BIGINT, source_name VARCHAR, target_field_id BIGINT,
    parent_column BIGINT, is_partition BOOLEAN
);
CREATE TABLE lake.ducklake_column_tag (
    table_id BIGINT, column_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR,
    value VARCHAR
);
CREATE TABLE lake.ducklake_data_file (
    data_file_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT,
    file_order BIGINT, path VARCHAR, path_is_relative BOOLEAN, file_format VARCHAR,
    record_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, row_id_start BIGINT,
    partition_id BIGINT, encryption_key VARCHAR, mapping_id BIGINT, partial_max BIGINT
);
CREATE TABLE lake.ducklake_delete_file (
    delete_file_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT,
    data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, format VARCHAR,
    delete_count BIGINT, file_size_bytes BIGINT, footer_size BIGINT, encryption_key VARCHAR,
    partial_max BIGINT
);
CREATE TABLE lake.ducklake_file_column_stats (
    data_file_id BIGINT, table_id BIGINT, column_id BIGINT, column_size_bytes BIGINT,
    value_count BIGINT, null_count BIGINT, min_value VARCHAR, max_value VARCHAR,
    contains_nan BOOLEAN, extra_stats VARCHAR
);
CREATE TABLE lake.ducklake_file_variant_stats (
    data_file_id BIGINT, table_id BIGINT, column_id BIGINT, variant_path VARCHAR,
    shredded_type VARCHAR, column_size_bytes BIGINT, value_count BIGINT, null_count BIGINT,
    min_value VARCHAR, max_value VARCHAR, contains_nan BOOLEAN, extra_stats VARCHAR
);
CREATE TABLE lake.ducklake_table_stats (
    table_id BIGINT, record_count BIGINT, next_row_id BIGINT, file_size_bytes BIGINT
);
CREATE TABLE lake.ducklake_table_column_stats (
    table_id BIGINT, column_id BIGINT, contains_null BOOLEAN, contains_nan BOOLEAN,
    min_value VARCHAR, max_value VARCHAR, extra_stats VARCHAR
);
CREATE TABLE lake.ducklake_view (
    view_id BIGINT, view_uuid UUID, begin_snapshot BIGINT, end_snapshot BIGINT, schema_id BIGINT,
    view_name VARCHAR, dialect VARCHAR, sql VARCHAR, column_aliases VARCHAR
);
CREATE TABLE lake.ducklake_tag (
    object_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR, value VARCHAR
);
CREATE TABLE lake.ducklake_partition_info (
    partition_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT
);
CREATE TABLE lake.ducklake_partition_column (
    partition_id BIGINT, table_id BIGINT, partition_key_index BIGINT, column_id BIGINT,
    transform VARCHAR
);
CREATE TABLE lake.ducklake_file_partition_value (
    data_file_id BIGINT, table_id BIGINT, partition_key_index BIGINT, partition_value VARCHAR
);
CREATE TABLE lake.ducklake_files_scheduled_for_deletion (
    data_file_id BIGINT, path VARCHAR, path_is_relative BOOLEAN, schedule_start TIMESTAMPTZ
);
CREATE TABLE lake.ducklake_inlined_data_tables (
    table_id BIGINT, table_name VARCHAR, schema_version BIGINT
);
CREATE TABLE lake.ducklake_macro (
    schema_id BIGINT, macro_id BIGINT, macro_name VARCHAR, begin_snapshot BIGINT,
    end_snapshot BIGINT
);
CREATE TABLE lake.ducklake_macro_impl (
    macro_id BIGINT, impl_id BIGINT, dialect VARCHAR, sql VARCHAR, type VARCHAR
);
CREATE TABLE lake.ducklake_macro_parameters (
    macro_id BIGINT, impl_id BIGINT, column_id BIGINT, parameter_name VARCHAR,
    parameter_type VARCHAR, default_value VARCHAR, default_value_type VARCHAR
);
CREATE TABLE lake.ducklake_sort_info (
    sort_id BIGINT, table_id BIGINT, begin_snapshot BIGINT, end_snapshot BIGINT
);
CREATE TABLE lake.ducklake_sort_expression (
    sort_id BIGINT, table_id BIGINT, sort_key_index BIGINT, expression VARCHAR, dialect VARCHAR,
    sort_direction VARCHAR, null_order VARCHAR
);

-- name: numbered
-- Rows have numbers of their own in each table, as DuckLake wants them.
CREATE TABLE numbered_files AS
SELECT row_number() OVER files AS data_file_id, table_id, f.*,
    sum(rows) OVER (files ROWS UNBOUNDED PRECEDING) - rows AS row_id_start
FROM lake_files f JOIN lake.ducklake_table USING (table_name)
WINDOW files AS (ORDER BY table_id, began, f.path)

-- name: fill
INSERT INTO lake.ducklake_metadata (key, value)
VALUES ('version', '1.0'), ('created_by', 'Sheaf'), ('encrypted', 'false');
INSERT INTO lake.ducklake_schema VALUES (0, uuid(), 0, NULL, 'main', '', true);
INSERT INTO lake.ducklake_schema_versions SELECT 0, 0, table_id FROM lake.ducklake_table;
INSERT INTO lake.ducklake_column_mapping
SELECT table_id, table_id, 'map_by_name' FROM lake.ducklake_table;
INSERT INTO lake.ducklake_name_mapping
SELECT table_id, column_id, column_name, column_id, parent_column, false FROM lake.ducklake_column;
INSERT INTO lake.ducklake_data_file
SELECT data_file_id, table_id, began, ended, NULL, path, true, 'parquet', rows, bytes, NULL,
    row_id_start, NULL, NULL, table_id, NULL
FROM numbered_files ORDER BY ALL;
INSERT INTO lake.ducklake_delete_file
SELECT row_number() OVER (ORDER BY data_file_id, d.began), table_id, d.began, d.ended, data_file_id,
    d.path, true, 'parquet', d.rows, d.bytes, NULL, NULL, NULL
FROM lake_deletes d JOIN numbered_files f ON d.table_name = f.table_name AND d.data_path = f.path
    AND d.began >= f.began AND (f.ended IS NULL OR d.began < f.ended)
ORDER BY ALL;
INSERT INTO lake.ducklake_table_stats
SELECT table_id, sum(rows) FILTER (ended IS NULL), sum(rows), sum(bytes) FILTER (ended IS NULL)
FROM numbered_files GROUP BY table_id ORDER BY table_id

-- name: snapshots
INSERT INTO lake.ducklake_snapshot
SELECT unnest($number::BIGINT[]), unnest($effective::VARCHAR[])::TIMESTAMPTZ, 0,
    (SELECT max(table_id) + 1 FROM lake.ducklake_table),
    (SELECT count(*) + 1 FROM numbered_files)

-- name: tables
INSERT INTO lake.ducklake_table
SELECT unnest($id::BIGINT[]), unnest($uuid::UUID[]), 0, NULL, 0, unnest($name::VARCHAR[]), '', true

-- name: columns
INSERT INTO lake.ducklake_column
SELECT unnest($id::BIGINT[]), 0, NULL, unnest($table::BIGINT[]), unnest($id::BIGINT[]),
    unnest($name::VARCHAR[]), unnest($type::VARCHAR[]), NULL, NULL, true, unnest($parent::BIGINT[]),
    NULL, NULL

-- name: comments
INSERT INTO lake.ducklake_column_tag
SELECT unnest($table::BIGINT[]), unnest($id::BIGINT[]), 0, NULL, 'comment',
    unnest($meaning::VARCHAR[])
