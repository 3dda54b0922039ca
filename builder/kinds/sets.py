"""Lists of sets in SQL: which of them are the most specific, and which a version has left."""

SPECIFIC = (
    "list_sort(list_filter(list_distinct({sets}), lambda s: NOT coalesce(list_bool_or("
    "list_transform({sets}, lambda o: starts_with(o, s || ':'))), false)))"
)
"""The `sets` without their parent sets, sorted."""
LEFT = (
    f"list_filter({SPECIFIC.format(sets='{earlier}')}, lambda s: NOT coalesce(list_bool_or("
    "list_transform({now}, lambda t: t = s OR starts_with(t, s || ':'))), false))"
)
"""The most specific of the `earlier` sets that a version with the sets `now` has left, sorted."""
