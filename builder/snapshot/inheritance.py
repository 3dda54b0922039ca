"""Inheritance: what a revisit may have from its original, and what it has of its own. Pure."""

INHERITED = (
    "content_charset",
    "content_charset_source",
    "content_languages",
    "content_mime_detected",
    "content_mime_type",
    "title",
)
"""The columns that a revisit gets from its original; and of `sets` those of media types."""

TAKEN = (*INHERITED, "sets", "refers_to", "inherited")
"""The columns in which a revisit with an original differs from what it has of its own."""

_OWN = {
    **{n: f"CASE WHEN list_contains(inherited, '{n}') THEN NULL ELSE {n} END" for n in INHERITED},
    "sets": "CASE WHEN list_contains(inherited, 'sets') THEN "
    "list_filter(sets, lambda s: NOT starts_with(s, 'mime:')) ELSE sets END",
    "refers_to": "NULL::VARCHAR",
    "inherited": "CASE WHEN inherited IS NOT NULL THEN []::VARCHAR[] END",
}
OWN = ", ".join(f"{expression} AS {name}" for name, expression in _OWN.items())
"""Of a version, in SQL, what it has of its own: for * REPLACE."""
