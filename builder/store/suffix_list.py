"""The public suffix list: which part of a host is its registered domain."""

import importlib.metadata
import re
from functools import cache
from pathlib import Path

import publicsuffixlist


@cache
def _suffix_list() -> publicsuffixlist.PublicSuffixList:
    return publicsuffixlist.PublicSuffixList(accept_unknown=False, only_icann=True)


def split_suffix(host: str) -> tuple[str, str] | None:
    """Return a host's public suffix and the part before it; None without a known suffix.

    `host` is lower case; an internationalized one is in punycode.
    """
    suffix = _suffix_list().publicsuffix(host)
    if suffix is None:
        return None
    return suffix, host[: -len(suffix)].rstrip(".")


@cache
def suffix_list_version() -> str:
    """Return the version of the package and of its list."""
    package = importlib.metadata.version("publicsuffixlist")
    path = Path(publicsuffixlist.__file__).with_name("public_suffix_list.dat")
    with path.open(encoding="utf-8") as lines:
        for _, line in zip(range(40), lines, strict=False):
            match = re.match(r"// VERSION: (\S+)", line)
            if match:
                return f"{package} ({match[1]})"
    return package
