"""The configuration keys for harvesting: the repositories, and the folder of what they gave.

`[[repositories]]` lists them. `harvest.repositories`, which is older, names addresses alone.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from functions.config import check
from functions.config.key import (
    Fault,
    Field,
    Fields,
    flag,
    list_of,
    number,
    optional,
    row,
    seconds,
    table_of,
)

_NAME = check.like(r"[A-Za-z0-9_\-]+")
_URLS = list_of(check.is_url, "URLs", least=1)
_VARIABLE = optional(
    check.like(r"(?!SHEAF_)[A-Za-z_][A-Za-z0-9_]*"),
    "the name of an environment variable that does not begin with SHEAF_",
)

REPOSITORY = Fields(
    {
        "name": Field(None, _NAME, "letters, digits, - and _"),
        "url": Field(None, check.is_url, "the http or https URL of a repository"),
        "former": list_of(check.is_url, "the URLs that it had before"),
        "prefixes": list_of(check.is_prefix, "metadata prefixes", ["oai_dc"], 1),
        "sets": list_of(check.is_text, "setSpecs"),
        "header": _VARIABLE,
        "token": _VARIABLE,
        "pace": seconds(0, 0, 3600),
        "minutes": number(120, 1, 10_080, "minutes"),
        "full": flag(False),
        "replicate": flag(False),
    }
)
"""A repository. `header` and `token` name variables, so that no secret is in the configuration.

`pace` is the seconds between two requests, `minutes` limit the harvest of one list in a night.
"""


def _find_lack(rule: Mapping[str, Any]) -> str:
    return "" if {"name", "url"} <= rule.keys() else "a table with name and url"


_RULES = REPOSITORY.rules("name and url", _find_lack)


def _find_fault(value: Any) -> Fault | None:
    """Return the fault of a list of repositories: of one, or of two that are not distinct."""
    if not _RULES.test(value):
        return _RULES.problem(value) or ("", value, _RULES.expected)
    names, urls, replicas = set[str](), set[str](), 0
    for place, rule in enumerate(value):
        if rule["name"] in names:
            return f"[{place}].name", rule["name"], "a name that no other repository has"
        for url in (rule["url"], *rule.get("former", ())):
            if url in urls:
                return f"[{place}]", url, "URLs that no other repository has, each once"
            urls.add(url)
        names.add(rule["name"])
        replicas += rule.get("replicate", False)
        if replicas > 1:
            return f"[{place}].replicate", True, "one repository to replicate at most"
    return None


def _are_addresses(value: Any) -> bool:
    """Return whether `value` is a table from names to lists of base URLs, each in one of them."""
    if not table_of(_NAME, _URLS.test, "").test(value):
        return False
    urls = [url for own in value.values() for url in own]
    return len({*urls}) == len(urls)


HARVEST_KEYS: tuple[Field, ...] = (
    row(
        "harvest.home",
        Field("harvests", check.is_text, "a folder"),
        "folder of what `sheaf update` harvests; relative to sheaf.toml",
    ),
    row(
        "harvest.repositories",
        Field(
            {},
            _are_addresses,
            "a table from names (letters, digits, - and _) to lists of different base URLs",
        ),
        "names for `sheaf harvest`: the present base URL of each, then former ones; "
        "`repositories` says more",
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
