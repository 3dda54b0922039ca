-- name: collection_changes
CREATE TABLE collection_changes AS
SELECT {collections} AS collection, sign,
    coalesce(content_length, 0) AS bytes,
    {facets}
FROM (
    SELECT 1 AS sign, sets, {counted} FROM new_versions WHERE kind = 'capture' AND NOT deleted
    UNION ALL
    SELECT -1, sets, {counted} FROM superseded_versions WHERE kind = 'capture' AND NOT deleted
)

-- name: ranked_tallies
SELECT collection, facet, value, captures, bytes, different, all_captures, all_bytes, low, high
FROM (
    SELECT *, row_number() OVER (facet_of ORDER BY captures DESC, value) AS rank,
        count(*) OVER facet_of AS different, sum(captures) OVER facet_of AS all_captures,
        sum(bytes) OVER facet_of AS all_bytes,
        min(nullif(value, '')) OVER facet_of AS low, max(nullif(value, '')) OVER facet_of AS high
    FROM collection_tallies WHERE list_contains($some, collection)
    WINDOW facet_of AS (PARTITION BY collection, facet)
) WHERE rank <= if(facet = 'day', 1, {shown}) ORDER BY collection, facet, rank
