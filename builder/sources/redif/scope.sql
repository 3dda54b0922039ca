-- name: scope
CREATE TABLE scope AS
SELECT id FROM read_parquet({restless})
UNION
SELECT handle FROM tree_template JOIN tree_file USING (ordinal)
WHERE state IS NOT NULL AND handle IS NOT NULL
UNION
SELECT handle FROM (
    SELECT handle, count(*) FILTER (is_new) AS now, count(*) FILTER (NOT is_new) AS before
    FROM (SELECT path, handle, text_sha256, true AS is_new
          FROM parsed_template JOIN parsed_file USING (ordinal)
          UNION ALL
          SELECT f.path, t.handle, t.text_sha256, false
          FROM known_template t JOIN known_file f USING (ordinal)
          SEMI JOIN gone_file USING (ordinal))
    WHERE handle IS NOT NULL GROUP BY path, handle, text_sha256)
WHERE now != 1 OR before != 1

-- name: read_template
CREATE TABLE read_template AS
SELECT t.* FROM tree_template t SEMI JOIN scope ON id = handle
UNION ALL
FROM tree_template WHERE handle IS NULL AND ordinal IN (SELECT ordinal FROM parsed_file)

-- name: read_file
CREATE TABLE read_file AS FROM tree_file
WHERE segment IS NOT NULL OR state IS NOT NULL OR ordinal IN (SELECT ordinal FROM read_template)

-- name: scoped_files
INSERT INTO scope SELECT {prefix} || rel FROM staged_file UNION SELECT {prefix} || rel FROM gone_file

-- name: listed_file
CREATE VIEW listed_file AS
SELECT ordinal, source, path, rel, home, headed, modified, bytes, sha256, templates, nameless,
    invalid, archives, state, true AS counts
FROM staged_file WHERE segment IS NOT NULL
UNION ALL BY NAME
SELECT *, true AS counts FROM known_file ANTI JOIN gone_file USING (ordinal)

-- name: present
CREATE VIEW present AS
SELECT own, sum(many) AS present FROM (
    SELECT home AS own, count(*) AS many FROM stood WHERE lost IS NULL GROUP BY home
    UNION ALL
    SELECT f.home, count(*) FROM known_template t JOIN known_file f USING (ordinal)
    ANTI JOIN scope ON id = handle WHERE handle IS NOT NULL GROUP BY f.home)
GROUP BY own
