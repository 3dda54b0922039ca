"""The distribution that Sheaf is installed from; its name differs from the command's."""

import json
import re
from functools import cache
from importlib import metadata

NAME = "sheaf-archive"

_ARCHIVED = "$Format:%H$"
"""The commit, which `git archive` writes in (.gitattributes)."""
_NAME_END = re.compile(r"[^A-Za-z0-9._-]")


@cache
def version() -> str:
    """Return the program's version, "" where it was copied and not installed."""
    try:
        return metadata.version(NAME)
    except metadata.PackageNotFoundError:
        return ""


def commit() -> str:
    """Return the commit of a release, or of a repository that pip installed; "" if it is unknown.

    pip notes a repository's commit in `direct_url.json` (PEP 610).
    """
    if not _ARCHIVED.startswith("$"):
        return _ARCHIVED
    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
        return str(json.loads(text or "{}").get("vcs_info", {}).get("commit_id", ""))
    except (metadata.PackageNotFoundError, ValueError):
        return ""


def libraries() -> dict[str, str]:
    """Return the versions of the libraries that Sheaf depends on, by name; "" if one is missing."""
    try:
        wanted = metadata.requires(NAME) or []
    except metadata.PackageNotFoundError:
        return {}
    versions = {}
    for requirement in wanted:
        if "extra ==" in requirement:
            continue
        name = _NAME_END.split(requirement, maxsplit=1)[0]
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = ""
    return dict(sorted(versions.items()))
