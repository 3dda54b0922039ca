-- name: crossed
-- Faults between files, one of each kind and subject for a new file, at its first such template.
SELECT rel, min(place), 'other-archive', 'Handle', 'of archive ' || part[2]
    || ': move them to its folder, or correct the handles (templates: ' || count(*) || ')', '{kept}'
FROM belonging WHERE part[2] != home GROUP BY rel, part[2]
UNION ALL
SELECT b.rel, min(b.place), 'series-absent', 'Handle', b.series
    || ' has no template: add one to ' || b.part[2] || 'seri.rdf (templates: ' || count(*) || ')',
    '{kept}'
FROM belonging b
LEFT JOIN winner s ON s.handle = b.series
LEFT JOIN stood o ON o.id = b.series AND o.lost IS NULL
WHERE len(b.part) > 3 AND s.handle IS NULL AND o.id IS NULL GROUP BY b.rel, b.series, b.part[2]
UNION ALL
SELECT b.rel, min(b.place), 'series-type', 'Template-Type', b.type || ', but ' || b.series
    || ' has ' || s.content || ': correct them, or Type in ' || s.rel
    || ' (templates: ' || count(*) || ')', '{kept}'
FROM belonging b JOIN winner s ON s.handle = b.series
WHERE len(b.part) > 3 AND NOT starts_with(lower(b.type), lower(s.content))
GROUP BY b.rel, b.type, b.series, s.content, s.rel

-- name: belonging
-- Templates of new files. Archives and series are also listed in the folder `all` of RePEc.
CREATE VIEW belonging AS
SELECT t.rel, t.place, t.home, t.type, string_split(t.handle, ':') AS part,
    array_to_string(part[1:3], ':') AS series
FROM staged_template t JOIN fresh USING (ordinal)
WHERE t.home IS NOT NULL AND len(part) > if(t.home = 'all', 3, 1) AND t.type != 'ReDIF-Person 1.0'
