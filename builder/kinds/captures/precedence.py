"""Precedence: which of several copies or originals gives a capture its values.

The leading copy of a capture gives the description. Missing values are filled from the other
copies, but a whole copy takes nothing from a damaged one. The leading copy's sets are kept.
Collections of the other copies are added, and so are their sets in hierarchies that the leading
copy lacks. A revisit inherits values from its original.
"""

from builder.kinds.sets import LEFT, SPECIFIC
from builder.snapshot.sql import Statements
from functions.snapshot import schema

_SQL = Statements(__file__)

_CAPTURE = tuple(column.name for column in schema.CAPTURE)
COLUMNS = ", ".join(_CAPTURE)
"""The columns of a capture, for SELECT."""
DESCRIBED = tuple(name for name in _CAPTURE if name not in schema.LOCATION)
"""The columns that describe a capture: all except its location."""

REQUESTED = ("url_surtkey", "fetch_method", "fetch_body")
"""Columns of the request, all from one copy: another copy may have answered another request."""

FOLDED = (
    "list_reduce({lists}, lambda have, more: list_concat(have, list_filter(more, "
    "lambda s: starts_with(s, 'collection:') OR NOT list_contains("
    "list_transform(have, lambda h: split_part(h, ':', 1)), split_part(s, ':', 1)))))"
)
"""The `lists` of sets united into one; the leading copy's list comes first."""
# `leads` is computed once a row and used by each column. Computed in each column, it took a fifth
# of the time of a small publish for planning alone.
_LEADS = (
    "o.deleted OR CASE WHEN (i.content_length IS NULL) != (o.content_length IS NULL) "
    "THEN o.content_length IS NULL WHEN i.warc_filename = o.warc_filename "
    "AND i.warc_record_offset IS NOT DISTINCT FROM o.warc_record_offset THEN true "
    "WHEN (i.content_damaged IS NULL) != (o.content_damaged IS NULL) "
    "THEN o.content_damaged IS NOT NULL "
    "ELSE o.warc_record_type = 'revisit' AND i.warc_record_type != 'revisit' END"
)
_FILLS = "CASE WHEN leads THEN {} ELSE {} END".format(
    *(
        f"{other}_content_damaged IS NULL OR {leading}_content_damaged IS NOT NULL"
        for leading, other in (("given", "had"), ("had", "given"))
    )
)
UNITED = (
    "CASE WHEN first_value(content_damaged) OVER copy IS NULL THEN "
    "first_value(CASE WHEN content_damaged IS NULL THEN {name} END IGNORE NULLS) OVER copy "
    "ELSE first_value({name} IGNORE NULLS) OVER copy END"
)
"""The united value of a column over the window `copy`, whose first row is the leading copy."""
_BOTH = ", ".join(
    f"i.{name} AS given_{name}, o.{name} AS had_{name}" for name in ("sets", *_CAPTURE)
)
_PAIRS = (
    f"SELECT *, {_FILLS} AS fills FROM (SELECT {_LEADS} AS leads, o.position, "
    f"o.identifier, o.published, o.left_sets, o.deleted, "
    f"o.reason, {_BOTH} FROM intake_captures i JOIN own_versions o USING (identifier))"
)
# Where an index lacks the request, an archive file may give it; a value from an archive file stays.
_ASKED = (
    "(CASE WHEN leads THEN given_content_length IS NOT NULL OR given_fetch_method IS NOT NULL "
    "OR had_fetch_method IS NULL ELSE had_content_length IS NULL AND had_fetch_method IS NULL "
    "AND given_fetch_method IS NOT NULL END)"
)
_CHOSEN = ", ".join(
    f"CASE WHEN {_ASKED} THEN given_{name} ELSE had_{name} END AS {name}" for name in REQUESTED
)
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

_OWN_VALUES = {
    **{n: f"CASE WHEN list_contains(inherited, '{n}') THEN NULL ELSE {n} END" for n in INHERITED},
    "sets": "CASE WHEN list_contains(inherited, 'sets') THEN "
    "list_filter(sets, lambda s: NOT starts_with(s, 'mime:')) ELSE sets END",
    "refers_to": "NULL::VARCHAR",
    "inherited": "CASE WHEN inherited IS NOT NULL THEN []::VARCHAR[] END",
}


_CHOSEN += ", " + ", ".join(
    f"CASE WHEN leads THEN {fresh} ELSE {had} END AS {name}"
    for name, fresh, had in (
        (
            n,
            f"coalesce(given_{n}, CASE WHEN fills THEN had_{n} END)",
            f"coalesce(had_{n}, CASE WHEN fills THEN given_{n} END)",
        )
        if n in DESCRIBED
        else (n, f"given_{n}", f"had_{n}")
        for n in _CAPTURE
        if n not in REQUESTED
    )
)
# A tombstone does not show whether it inherited its media type set from its original.
_EARLIER = (
    "CASE WHEN deleted AND given_warc_record_type = 'revisit' THEN "
    "list_filter(had_sets, lambda s: NOT starts_with(s, 'mime:')) ELSE had_sets END"
)
_LISTS = f"(CASE WHEN leads THEN [given_sets, {_EARLIER}] ELSE [{_EARLIER}, given_sets] END)"
# A SURT is derived from the URL and the request: a SURT that differs alone is no change.
_COMPARED = ("sets", *(name for name in DESCRIBED if name != "url_surtkey"))
_DIFFERS = " OR ".join(f"{name} IS DISTINCT FROM had_{name}" for name in _COMPARED)
REVISED = _SQL.get(
    "compared_captures",
    columns=COLUMNS,
    left=LEFT.format(earlier="list_concat(published, left_sets)", now="sets"),
    differs=_DIFFERS,
    sets=SPECIFIC.format(sets=FOLDED.format(lists=_LISTS)),
    chosen=_CHOSEN,
    pairs=_PAIRS,
)
"""Makes `compared_captures` of the items that are in both `intake_captures` and `own_versions`.

It has the united version of each; builder.snapshot.scratch_tables gives the other columns.
"""

OWN_VALUES = ", ".join(f"{expression} AS {name}" for name, expression in _OWN_VALUES.items())
"""SQL for a version without its inherited values, for * REPLACE."""
