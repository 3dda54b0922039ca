"""The configuration keys for harvesting: repositories, and the folder of what they gave."""

from dataclasses import replace
from typing import Any

from functions.config import check, key
from functions.config.key import Fault, Field, list_of, row

_NAME = check.like(r"[A-Za-z0-9_\-]+")
_VARIABLE = key.optional(
    check.like(r"(?!SHEAF_)[A-Za-z_][A-Za-z0-9_]*"),
    "the name of an environment variable that does not begin with SHEAF_",
)
REPOSITORY = key.Fields(
    {
        "name": Field(None, _NAME, "letters, digits, - and _"),
        "url": Field(None, check.is_url, "the http or https URL of a repository"),
        "former": list_of(check.is_url, "the URLs that it had before"),
        "prefixes": list_of(check.is_prefix, "metadata prefixes", ["oai_dc"], 1),
        "sets": list_of(check.is_text, "setSpecs"),
        "header": _VARIABLE,
        "token": _VARIABLE,
        "pace": key.seconds(0, 0, 3600),
        "minutes": key.number(120, 1, 10_080, "minutes"),
        "check_days": key.number(30, 0, 3650, "days (0: never)"),
        "full": key.flag(False),
        "replicate": key.flag(False),
        "provenance": key.flag(False),
    }
)
"""A repository. `header` and `token` name variables, so that no secret is in the configuration.

`pace` is the seconds between two requests, `minutes` limit the harvest of one list in a night, and
`check_days` lie between two checks of the repository. A record of the repository that the store
replicates says where it came from only with `provenance`.
"""
_RULES = REPOSITORY.rules(
    "name and url", lambda rule: "" if {"name", "url"} <= {*rule} else "a table with name and url"
)


def _find_fault(value: Any) -> Fault | None:
    """Return the fault of a list of repositories: of one, or of two that are not distinct."""
    if not _RULES.test(value):
        return _RULES.problem(value) or ("", value, _RULES.expected)
    before: set[str] = set()
    for place, rule in enumerate(value):
        own = [rule["name"], rule["url"], *rule.get("former", ())]
        if rule.get("replicate") and len(value) > 1:
            text = "no other repository beside one that is replicated: it needs a store of its own"
            return f"[{place}].replicate", True, text
        for number, text in enumerate(own):
            if text in before or text in own[:number]:
                return f"[{place}]", text, "what no other repository has, and each URL once"
        before.update(own)
    return None


HARVEST_KEYS: tuple[Field, ...] = (
    row(
        "harvest.home",
        Field("harvests", check.is_text, "a folder"),
        "folder of what `sheaf update` harvests; relative to sheaf.toml",
    ),
    row(
        "repositories",
        replace(
            _RULES,
            test=lambda value: _find_fault(value) is None,
            problem=_find_fault,
            complete=lambda rules: list(map(REPOSITORY.complete, rules)),
        ),
        "repositories that `sheaf update` harvests, each a section [[repositories]] "
        "(docs/guide/harvesting.md)",
    ),
)
