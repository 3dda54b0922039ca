"""Clusters: the structure of a template's attributes, and the check of their positions.

The first attribute of a cluster is its key and opens it; the next key of the same name opens
another one. An attribute of another cluster closes it and is tried one level outside.

For an unknown name, the nearest known names by edit distance are suggested.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from builder.sources.redif.form import notation as values
from builder.sources.redif.form.notation import Attribute
from builder.sources.redif.form.specification import (
    ERROR,
    UNBOUNDED,
    WARNING,
    AttributePlace,
    Diagnostic,
    Specification,
)

_LONGEST = 40  # the most characters of a name with suggestions


def edit_distance(left: str, right: str, most: int) -> int:
    """Return the edit distance (Levenshtein) of two names, at most `most` + 1."""
    if abs(len(left) - len(right)) > most:
        return most + 1
    row = list(range(len(right) + 1))
    for number, character in enumerate(left, 1):
        diagonal, row[0] = row[0], number
        for at, other in enumerate(right, 1):
            diagonal, row[at] = (
                row[at],
                min(row[at] + 1, row[at - 1] + 1, diagonal + (character != other)),
            )
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def nearest(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the nearest known names, sorted; empty if all are too far.

    The limit is three edits; for names below 12 characters two, below 5 one.
    """
    if not 4 <= len(name) <= _LONGEST:
        return ()
    most = 1 if len(name) < 5 else 2 if len(name) < 12 else 3
    closest: list[str] = []
    for other in names:
        apart = edit_distance(name, other, most)
        if apart < most:
            most, closest = apart, [other]
        elif apart == most:
            closest.append(other)
    return tuple(sorted(closest))


_nearest_cached = lru_cache(1 << 12)(nearest)


_HANDLE = "handle"
_SUGGESTED = 20  # unknown attributes of a template that get suggestions
Structure = dict[str, list[Any]]
"""Values by the attribute's name in lower case; clusters, as Structures, by their prefix."""


class Arrangement:
    """The structure of one template, and its diagnostics.

    Values have one line; URLs have no white space. The structure has every attribute with a value
    and a place, and local ones (`X-...`) by their whole name. Unknown and misplaced attributes are
    only in the list of attributes, for their place is unknown.
    """

    def __init__(
        self, specification: Specification | None, attributes: Sequence[Attribute], file: str
    ) -> None:
        self.structure: Structure = {}
        self.diagnostics: list[Diagnostic] = []
        self.handle: str | None = None
        self._file = file
        self._specification = specification
        self._unknown = 0
        self._open: list[tuple[tuple[str, ...], Structure]] = [((), self.structure)]
        if specification is None:
            for attribute in attributes:
                self._file_unplaced(attribute)
            return
        places = specification.places
        path, node = self._open[0]
        for attribute in attributes:
            name, _, text = attribute
            candidates = places.get(name) or places.get(name.lower())
            if candidates is None:
                self._report_unplaced(attribute, name.lower())
                continue
            place: AttributePlace | None = candidates[0]
            assert place is not None
            if place.key or place.path is not path:
                place = self._reach(attribute, candidates)
                path, node = self._open[-1]
                if place is None:
                    continue
            length, kind = len(text), place.kind
            if length < 2 or length > place.longest or place.watched:
                self._file_value(attribute, place)
                continue
            if kind is not None:
                if kind == "url" or length > values.SHORT:
                    form = values.normalize(text, kind)
                else:
                    form = values.normalize_cached(text, kind)
                if form is None:
                    self._file_value(attribute, place)
                    continue
                text = form
            elif "\n" in text or "  " in text or "\t" in text or not text.isascii():
                text = values.collapse_space(text)
            if place.member in node:
                node[place.member].append(text)
            else:
                node[place.member] = [text]
        for group in specification.required:
            if not any(map(self._has, group)):
                names = " or ".join(sorted(place.name for place in group))
                line = attributes[0].line if attributes else 0
                self.diagnostics.append(
                    Diagnostic(
                        self._file, line, "required-absent", ERROR, f"{names} is missing", names
                    )
                )

    def _has(self, place: AttributePlace) -> bool:
        """Tell whether an attribute of the template, or of one of its clusters, has a value."""
        nodes = self.structure.get(place.filed, ()) if place.path else (self.structure,)
        return any(place.member in node for node in nodes)

    def _report(
        self, attribute: Attribute, code: str, severity: str, message: str, suggestion: str = ""
    ) -> None:
        self.diagnostics.append(
            Diagnostic(self._file, attribute.line, code, severity, message, suggestion)
        )

    def _file_unplaced(self, attribute: Attribute) -> None:
        if attribute.value:
            name = attribute.name.lower()
            if name == _HANDLE:
                self.handle = self.handle or attribute.value
            self.structure.setdefault(name, []).append(values.collapse_space(attribute.value))

    def _report_unplaced(self, attribute: Attribute, name: str) -> None:
        assert self._specification is not None
        if name.startswith("x-") or "-x-" in name:
            self._file_unplaced(attribute)
            return
        self._unknown += 1
        names = self._specification.known_names if self._unknown <= _SUGGESTED else frozenset()
        nearest_names = _nearest_cached(name, names) if len(name) <= _LONGEST else ()
        places = (self._specification.places[near] for near in nearest_names)
        self._report(
            attribute,
            "unknown-attribute",
            ERROR,
            f"{attribute.name[:80]} is not an attribute of a {self._specification.type}",
            " or ".join(usual.name for usual, *_ in places),
        )

    def _file_value(self, attribute: Attribute, place: AttributePlace) -> None:
        """Check a value and file it in the open cluster."""
        if place.deprecated and (place.key or not place.path):
            self._report(attribute, "deprecated", WARNING, f"{attribute.name} is deprecated")
        text = attribute.value
        if not text:
            if place.key:
                self._report(attribute, "key-empty", WARNING, f"{attribute.name} has no value")
            return
        if place.member == _HANDLE:
            self.handle = self.handle or text
        if place.kind is not None:
            text = self._normalize(attribute, place, place.kind)
        else:
            text = values.collapse_space(text)
        if len(text) > place.longest or (len(text) == 1 and place.longest < UNBOUNDED):
            length = len(text)
            if length == 1:
                self._report(attribute, "too-short", WARNING, f"{attribute.name} has one character")
            else:
                message = f"{attribute.name} has {length:,} characters, more than {place.longest:,}"
                self._report(attribute, "too-long", WARNING, message)
        node = self._open[-1][1]
        listed = node.get(place.member)
        if listed is None:
            node[place.member] = [text]
            return
        if place.once:
            self._report(
                attribute,
                "cannot-repeat",
                ERROR,
                f"{attribute.name} is repeated here: a Template-Type may be missing before it",
            )
        listed.append(text)

    def _reach(
        self, attribute: Attribute, candidates: tuple[AttributePlace, ...]
    ) -> AttributePlace | None:
        """Open or close clusters until the attribute has its place; None without a place."""
        for place in candidates:
            target = place.path[:-1] if place.key else place.path
            depth = len(target)  # each open cluster is inside the one before
            if depth < len(self._open) and self._open[depth][0] == target:
                del self._open[depth + 1 :]
                if place.key:
                    node: Structure = {}
                    self._open[-1][1].setdefault(place.filed, []).append(node)
                    self._open.append((place.path, node))
                return place
        del self._open[1:]
        if attribute.value:
            assert self._specification is not None
            place = candidates[0]
            keys = self._specification.openers[place.path[:-1] if place.key else place.path]
            self._report(
                attribute,
                "misplaced-attribute",
                ERROR,
                f"{attribute.name} is outside its cluster, which {keys} opens",
                keys,
            )
        return None

    def _normalize(self, attribute: Attribute, place: AttributePlace, kind: str) -> str:
        """Return a value in the form of its kind, or unchanged if it does not fit."""
        text = values.normalize(attribute.value, kind)
        if text is not None:
            return text
        if kind == "url":
            cleaned = values.clean_url(attribute.value)
            self._check_space(attribute)
        else:
            cleaned = values.collapse_space(attribute.value)
        text = values.normalize(cleaned, kind)
        if text is not None:
            return text
        severity = ERROR if place.key or place.required else WARNING
        called = f"{attribute.name} is not {values.KINDS[kind]}: {cleaned[:80]}"
        self._report(attribute, "invalid-value", severity, called)
        return cleaned

    def _check_space(self, attribute: Attribute) -> None:
        parts = attribute.value.split()
        if len(parts) < 2 or (len(parts) == 2 and parts[0].upper() == "URL:"):
            return
        if any(part.endswith("-") for part in parts[:-1]):  # which may not belong to the URL
            self._report(
                attribute, "url-split", ERROR, f"{attribute.name} is broken after a hyphen"
            )
        else:
            self._report(attribute, "url-space", WARNING, f"{attribute.name} contains white space")
