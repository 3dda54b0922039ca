-- name: known_file
CREATE VIEW known_file AS FROM read_parquet({path})

-- name: known_template
CREATE VIEW known_template AS FROM read_parquet({path})

-- name: gone_file
-- Known files that the source does not have any more, or has otherwise, or that were read again.
CREATE TABLE gone_file AS
SELECT ordinal, rel FROM known_file SEMI JOIN read_parquet({path}) USING (source, path)
UNION
SELECT ordinal, rel FROM known_file WHERE ordinal IN ({dropped})

-- name: tree_file
CREATE VIEW tree_file AS FROM parsed_file
UNION ALL BY NAME
SELECT * EXCLUDE (rel, home, headed) FROM known_file ANTI JOIN gone_file USING (ordinal)

-- name: tree_template
CREATE VIEW tree_template AS FROM parsed_template
UNION ALL BY NAME
FROM known_template ANTI JOIN gone_file USING (ordinal)

-- name: shared_handle
CREATE TABLE shared_handle AS
SELECT handle FROM staged_template GROUP BY handle HAVING count(*) > 1 AND handle IS NOT NULL

-- name: kept_file
SELECT ordinal, source, path, rel, home, headed, modified, bytes, sha256, templates, nameless,
    invalid, archives, state
FROM listed_file WHERE source IN ({trees}) ORDER BY ordinal

-- name: kept_template
SELECT ordinal, place, line, length, encoding, type, valid, handle, text_sha256, name, restriction,
    provider, content
FROM tree_template
WHERE ordinal NOT IN (SELECT ordinal FROM listed_file WHERE source NOT IN ({trees}))

-- name: kept_restless
-- What the next ingest must compare, even if its file has not changed: templates that share their
-- handle, that others inherit from, that lie outside of archives, and objects that are not found.
SELECT handle AS id FROM shared_handle
UNION
SELECT handle FROM staged_template
WHERE handle IS NOT NULL AND (home IS NULL OR type IN {types})
UNION
SELECT id FROM missing ANTI JOIN lost USING (id)
UNION
SELECT handle FROM doubt
UNION
SELECT id FROM obi
WHERE kind = {kind} AND id NOT IN (SELECT {prefix} || rel FROM staged_file WHERE counts)
