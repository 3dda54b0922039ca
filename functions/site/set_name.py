"""Names of sets in the language of the reader."""

from collections.abc import Callable, Mapping, Sequence

from functions.oai.render.language import Language
from functions.snapshot import oai_name

_JOINED: Mapping[str, Callable[[Sequence[str]], str]] = {
    "domain": lambda levels: ".".join(reversed(levels)),
    "ip": ".".join,
    "mime": "/".join,
    "collection": " / ".join,
    "RePEc": ":".join,
    "repository": " / ".join,
    **dict.fromkeys(("from", "host", "platform", "status", "strategy", "type"), "".join),
}
"""What the levels below the first one mean, by that one."""
_SINGLE = frozenset({"from", "host", "platform", "status", "strategy", "type"})


def name_set(
    text: Language, configured: Mapping[str, str], spec: str, name: str | None = None
) -> str:
    """Return the name of a set for people: the configured one, else `name`, else by its levels."""
    first, *below = oai_name.split_set(spec)
    if first == "domain" and below[:1] == ["ip"]:
        first, below = "ip", below[1:]
    is_known = first in _JOINED and not (first in _SINGLE and len(below) > 1)
    if configured.get(spec) or name or not is_known:
        return oai_name.set_name(spec, dict(configured), name)
    if not below:
        return text(f"setname.{first}_all")
    key = "archive" if first == "RePEc" and len(below) == 1 else first
    return text(f"setname.{key}", name=_JOINED[first](below))
