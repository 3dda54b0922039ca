"""The rules of an operator's own sets: `sets.rules`."""

from functions.config import check
from functions.config.key import Field, Fields, list_of
from functions.snapshot import oai_name

_RESERVED = ("domain", "mime", "collection")
"""First levels of generated sets, not allowed in rules."""

_TYPE = r"[a-z0-9!#$&^_.+\-]+"
_has_scheme = check.like(r"[A-Za-z][A-Za-z0-9+\-]*:.*")
_CONDITIONS = {
    "hosts": (
        check.like(r"(?ia)[a-z0-9_]([a-z0-9_.\-]*[a-z0-9_\-])?|[0-9a-f:.]*:[0-9a-f:.]*"),
        "host names such as idnes.cz, internationalized ones as punycode",
    ),
    "url_prefixes": (
        lambda v: _has_scheme(v) and v.isprintable(),
        "URL prefixes with the scheme, such as http://www.idnes.cz/news/",
    ),
    "types": (
        check.like(rf"(?ia){_TYPE}/(\*|{_TYPE})"),
        "media types such as text/html or image/*",
    ),
    "languages": (
        check.like(r"(?ia)[a-z]{1,8}"),
        "language codes without a region, such as cs or en",
    ),
    "collections": (
        lambda v: isinstance(v, str) and all(v.split(":")) and v.isprintable(),
        "collections as in `sheaf ingest --collection`, such as serials:novinky",
    ),
}
"""The test of each value of a condition, and the expected values."""

_SPEC = (
    "a setSpec such as topic:news, whose first level is not "
    f"{', '.join(_RESERVED[:-1])} or {_RESERVED[-1]}"
)
_ONE_OR_MORE = f"one or more of {', '.join(_CONDITIONS)}"


RULES = Fields(
    {
        "set": Field(
            None,
            lambda v: (
                isinstance(v, str) and oai_name.is_set(v) and v.partition(":")[0] not in _RESERVED
            ),
            _SPEC,
        ),
        **{name: list_of(*condition, least=1) for name, condition in _CONDITIONS.items()},
    }
).rules(
    f"set and {_ONE_OR_MORE}",
    lambda rule: (
        f"a set: {_SPEC}"
        if "set" not in rule
        else f"{_ONE_OR_MORE} besides the set"
        if len(rule) == 1
        else ""
    ),
)
