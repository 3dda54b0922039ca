-- name: known_files
SELECT table_name, f.path, f.data_file_id, d.delete_file_id, d.path
FROM lake.ducklake_data_file f JOIN lake.ducklake_table t USING (table_id)
LEFT JOIN lake.ducklake_delete_file d ON d.data_file_id = f.data_file_id
    AND d.begin_snapshot <= $snapshot
    AND (d.end_snapshot IS NULL OR d.end_snapshot > $snapshot)
WHERE f.begin_snapshot <= $snapshot AND (f.end_snapshot IS NULL OR f.end_snapshot > $snapshot)

-- name: tables
SELECT table_name, table_id FROM lake.ducklake_table

-- name: end
UPDATE lake.{table} SET end_snapshot = $snapshot
WHERE {id} IN (SELECT unnest($ids::BIGINT[]))

-- name: data_files
INSERT INTO lake.ducklake_data_file
SELECT unnest($ids::BIGINT[]), unnest($table::BIGINT[]), $snapshot, NULL, NULL,
    unnest($path::VARCHAR[]), true, 'parquet', unnest($rows::BIGINT[]), unnest($bytes::BIGINT[]),
    NULL, unnest($first::BIGINT[]), NULL, NULL, unnest($table::BIGINT[]), NULL

-- name: delete_files
INSERT INTO lake.ducklake_delete_file
SELECT unnest($ids::BIGINT[]), unnest($table::BIGINT[]), $snapshot, NULL,
    unnest($data_file::BIGINT[]), unnest($path::VARCHAR[]), true, 'parquet',
    unnest($rows::BIGINT[]), unnest($bytes::BIGINT[]), NULL, NULL, NULL

-- name: snapshot
INSERT INTO lake.ducklake_snapshot
SELECT $snapshot, $effective::TIMESTAMPTZ, 0, max(table_id) + 1, $next FROM lake.ducklake_table

-- name: drop_statistics
DELETE FROM lake.ducklake_table_stats

-- name: statistics
INSERT INTO lake.ducklake_table_stats
SELECT table_id, sum(record_count) FILTER (end_snapshot IS NULL),
    max(row_id_start + record_count), sum(file_size_bytes) FILTER (end_snapshot IS NULL)
FROM lake.ducklake_data_file GROUP BY table_id ORDER BY table_id

-- name: snapshots
SELECT snapshot_id, next_file_id FROM lake.ducklake_snapshot ORDER BY snapshot_id

-- name: drop_files
DELETE FROM lake.{table} WHERE NOT EXISTS (
    SELECT 1 FROM lake.ducklake_snapshot WHERE snapshot_id >= begin_snapshot
    AND (end_snapshot IS NULL OR snapshot_id < end_snapshot))

-- name: drop_snapshots
DELETE FROM lake.ducklake_snapshot WHERE snapshot_id IN (SELECT unnest($numbers::BIGINT[]))

-- name: add_tables
INSERT INTO lake.ducklake_table
SELECT unnest($ids::BIGINT[]), unnest($uuid::UUID[]), 0, NULL, 0, unnest($name::VARCHAR[]), '', true

-- name: add_columns
INSERT INTO lake.ducklake_column
SELECT unnest($ids::BIGINT[]), 0, NULL, unnest($table::BIGINT[]), unnest($ids::BIGINT[]),
    unnest($name::VARCHAR[]), unnest($type::VARCHAR[]), NULL, NULL, true, unnest($parent::BIGINT[]),
    NULL, NULL

-- name: add_comments
INSERT INTO lake.ducklake_column_tag
SELECT unnest($table::BIGINT[]), unnest($ids::BIGINT[]), 0, NULL, 'comment',
    unnest($meaning::VARCHAR[])

-- name: add_versions
INSERT INTO lake.ducklake_schema_versions
SELECT 0, 0, table_id FROM lake.ducklake_table WHERE table_id >= $first

-- name: map_tables
INSERT INTO lake.ducklake_column_mapping
SELECT table_id, table_id, 'map_by_name' FROM lake.ducklake_table WHERE table_id >= $first

-- name: map_columns
INSERT INTO lake.ducklake_name_mapping
SELECT table_id, column_id, column_name, column_id, parent_column, false FROM lake.ducklake_column
WHERE table_id >= $first

-- name: create
-- All tables of DuckLake 1.0, which readers expect; most are empty. Keys are left out: no reader
-- needs them. https://ducklake.select/docs/stable/specification/tables/overview
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
INSERT INTO lake.ducklake_metadata (key, value)
VALUES ('version', '1.0'), ('created_by', 'Sheaf'), ('encrypted', 'false');
INSERT INTO lake.ducklake_schema VALUES (0, uuid(), 0, NULL, 'main', '', true)
