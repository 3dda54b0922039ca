"""Set specifications (setSpec): hierarchical, with each level escaped reversibly.

OAI-PMH 2.0 (section 2.6) allows a level the characters `A-Z a-z 0-9 - _ . ! ~ * ' ( )`. All other
characters, and `!`, become `!XX` for each byte of their UTF-8 form.
"""

import re
from collections.abc import Iterable, Sequence

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~*'()")
_ORDINARY = re.compile(r"[A-Za-z0-9\-_.~*'()]+")
_ESCAPE = re.compile(rb"!([0-9A-F]{2})")
_DATASETS = {
    # level 1: name of its level 2 sets
    "platform": "Datasets of the platform {}",
    "host": "Datasets of {}",
    "strategy": "Datasets stored as {}",
    "status": "Datasets with the status {}",
}
_SPEC = re.compile(r"[A-Za-z0-9\-_.!~*'()]+(:[A-Za-z0-9\-_.!~*'()]+)*")


def escape(name: str) -> str:
    """Return `name` as one level of a set specification; an empty name becomes `!`."""
    if not name:
        return "!"
    if _ORDINARY.fullmatch(name):
        return name
    return "".join(chr(b) if b in _PLAIN else f"!{b:02X}" for b in name.encode("utf-8"))


def unescape(level: str) -> str:
    """Return the name that `escape` turned into `level`."""
    if level == "!":
        return ""
    raw = _ESCAPE.sub(lambda m: bytes([int(m.group(1), 16)]), level.encode("ascii"))
    return raw.decode("utf-8", "replace")


def join(*names: str) -> str:
    """Return the specification with the levels `names`, from the root down, each escaped."""
    return ":".join(map(escape, names))


def split(spec: str) -> tuple[str, ...]:
    """Return the names of the levels of `spec`, from the root down."""
    return tuple(map(unescape, spec.split(":")))


def is_valid(spec: str) -> bool:
    """Return whether `spec` has the form that the protocol's schema requires of a setSpec."""
    return _SPEC.fullmatch(spec) is not None


def lineage(spec: str) -> tuple[str, ...]:
    """Return `spec` and all its ancestors, the root first."""
    levels = spec.split(":")
    return tuple(":".join(levels[: n + 1]) for n in range(len(levels)))


def most_specific(specs: Iterable[str]) -> tuple[str, ...]:
    """Return `specs` sorted, without duplicates and without ancestors of other members."""
    given = sorted(set(specs))
    above = {a for spec in given for a in lineage(spec)[:-1]}
    return tuple(spec for spec in given if spec not in above)


def is_within(spec: str, above: str) -> bool:
    """Return whether `spec` is `above` or below it."""
    return spec == above or spec.startswith(f"{above}:")


def name(spec: str, names: dict[str, str], told: str | None = None) -> str:
    """Return the set's name for people: the configured one, else `told`.

    If both are missing, the name is composed of the levels.
    """
    return names.get(spec) or told or _made_name(split(spec))


def _made_name(levels: Sequence[str]) -> str:
    if levels[:2] == ("domain", "ip"):
        return "Captures of " + (".".join(levels[2:]) or "addresses without a name")
    if levels[0] == "domain":
        return "Captures of " + (".".join(reversed(levels[1:])) or "all web sites")
    if levels[0] == "mime":
        return "Captures of " + (f"type {'/'.join(levels[1:])}" if levels[1:] else "all types")
    if levels[0] == "collection":
        return "Collection " + (" / ".join(levels[1:]) or "of any name")
    if levels[0] == "RePEc":
        of = "archive" if len(levels) == 2 else "series"
        return f"RePEc {of} {':'.join(levels[1:])}" if levels[1:] else "RePEc"
    if levels[0] == "type":
        return "Templates of " + (f"type {levels[1]}" if levels[1:] else "all types")
    if levels[0] == "repository":
        return "Harvested from " + (" / ".join(levels[1:]) or "other repositories")
    if levels[0] == "from":
        if len(levels) > 2:
            return f"{levels[1]}: {' / '.join(levels[2:])}"
        return "Sets of " + (levels[1] if levels[1:] else "other repositories")
    if levels[0] in _DATASETS and len(levels) <= 2:
        of = _DATASETS[levels[0]]
        return of.format(levels[1]) if levels[1:] else f"Datasets by {levels[0]}"
    return " / ".join(levels)
