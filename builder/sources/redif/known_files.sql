-- name: known_file
CREATE VIEW known_file AS FROM read_parquet({path})

-- name: known_template
CREATE VIEW known_template AS FROM read_parquet({path})

-- name: gone_file
-- Known files that the source does not have any more, or has otherwise, or that were read again.
CREATE TABLE gone_file AS
SELECT ordinal FROM known_file SEMI JOIN read_parquet({path}) USING (source, path)
UNION
SELECT ordinal FROM known_file WHERE ordinal IN ({dropped})

-- name: tree_file
CREATE VIEW tree_file AS FROM parsed_file
UNION ALL BY NAME
FROM known_file ANTI JOIN gone_file USING (ordinal)

-- name: tree_template
CREATE VIEW tree_template AS FROM parsed_template
UNION ALL BY NAME
FROM known_template ANTI JOIN gone_file USING (ordinal)

-- name: kept_file
SELECT ordinal, source, path, modified, bytes, sha256, templates, nameless, invalid, archives, state
FROM tree_file WHERE source IN ({trees}) ORDER BY ordinal

-- name: kept_template
SELECT ordinal, place, line, length, encoding, type, valid, handle, text_sha256, name, restriction,
    provider, content
FROM tree_template
WHERE ordinal IN (SELECT ordinal FROM tree_file WHERE source IN ({trees}))
