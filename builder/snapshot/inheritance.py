"""Inheritance: values that a revisit takes from its original, and its own values. Pure."""

INHERITED = (
    "content_charset",
    "content_charset_source",
    "content_languages",
    "content_mime_detected",
    "content_mime_type",
    "title",
)
"""The columns that a revisit inherits from its original.

Media types in `sets` are inherited too.
"""

TAKEN = (*INHERITED, "sets", "refers_to", "inherited")
"""The columns in which a revisit with an original may differ from its own values."""

_OWN = {
    **{n: f"CASE WHEN list_contains(inherited, '{n}') THEN NULL ELSE {n} END" for n in INHERITED},
    "sets": "CASE WHEN list_contains(inherited, 'sets') THEN "
    "list_filter(sets, lambda s: NOT starts_with(s, 'mime:')) ELSE sets END",
    "refers_to": "NULL::VARCHAR",
    "inherited": "CASE WHEN inherited IS NOT NULL THEN []::VARCHAR[] END",
}
OWN = ", ".join(f"{expression} AS {name}" for name, expression in _OWN.items())
"""SQL for a version without its inherited values, for * REPLACE."""
