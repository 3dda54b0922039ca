-- name: compared_captures
CREATE TABLE compared_captures AS
SELECT position AS old_position, identifier, sets, {columns},
    CASE WHEN sets = published THEN left_sets
    ELSE {left} END AS left_sets,
    reason IS NULL AND (deleted OR {differs}) AS changed
FROM (SELECT *, {sets} AS sets, {chosen}
      FROM ({pairs}))
