"""Profiles: what aggregators ask of the records of a format, as data in templates/check/profiles.

A profile is a TOML file: the namespaces of its records, their schema, `fields` (XPaths of titles,
dates, languages and links, and of elements that the format has not), and rules. A rule is an XPath
`test` that must be true `at` each place; where there is no such place, it does not apply.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from lxml import etree

from builder.check.checks import FOLDER, Check
from builder.errors import UsageError

OBLIGATIONS = {
    "M": ("specification", "The guidelines make this mandatory: the aggregator may refuse it."),
    "MA": ("advice", "The guidelines make this mandatory where it applies."),
    "R": ("advice", "The guidelines recommend this: without it the record is harder to use."),
}
"""Severity and meaning of a rule by its obligation."""
_PATH = re.compile(r"\w+:\w+(?:\[@\w+ = '[^']*'\])?(?:/\w+:\w+(?:\[@\w+ = '[^']*'\])?)*")
"""The path at the beginning of a test: what it is about."""
_PREFIXES = {"re": "http://exslt.org/regular-expressions"}


@dataclass(frozen=True, slots=True)
class ProfileRule:
    """A rule of a guideline; `section` is that of the guideline."""

    number: str
    title: str
    section: str
    obligation: str
    test: str
    mend: str
    at: str = "."


@dataclass(frozen=True, slots=True)
class Profile:
    """A format with its rules. `record` finds the record inside a wrapper.

    A namespace of `older` is read as the newer one that it names, so that one XPath is enough.
    """

    name: str
    title: str
    namespaces: Sequence[str]
    schema: str
    prefixes: Mapping[str, str]
    fields: Mapping[str, str]
    rules: Sequence[ProfileRule]
    record: str = "."
    older: Mapping[str, str] = field(default_factory=dict)

    def checks(self) -> Mapping[str, Check]:
        """Return the rules as checks by number, in the order of the file."""
        return {
            rule.number: Check(
                rule.number,
                rule.title,
                f"{self.title}, {rule.section} ({rule.obligation})",
                *OBLIGATIONS[rule.obligation],
                rule.mend,
            )
            for rule in self.rules
        }

    def select(self, place: etree._Element, path: str) -> Any:
        """Return what an XPath gives at a place: nodes, or a truth value."""
        return _compile(path, tuple(self.prefixes.items()))(place)

    def modernise(self, metadata: bytes) -> bytes:
        """Return metadata with the newest namespace of its format."""
        for old, new in self.older.items():
            quoted = rf"""(?<=["']){re.escape(old)}(?=["'])"""
            metadata = re.sub(quoted.encode(), new.encode(), metadata)
        return metadata

    def judge(self, root: etree._Element) -> Iterator[tuple[str, str]]:
        """Yield the number of each rule that applies to a record, and what breaks it, or ""."""
        records = self.select(root, self.record)
        for rule in self.rules:
            places = [place for record in records for place in self.select(record, rule.at)]
            wrong = [place for place in places if not self.select(place, f"boolean({rule.test})")]
            if places:
                yield rule.number, self._describe(wrong[0], rule) if wrong else ""

    def _describe(self, place: etree._Element, rule: ProfileRule) -> str:
        """Return what stands where a rule is broken: of a whole record, what the rule is about."""
        if rule.at != "." and not rule.at.startswith("self::"):
            return describe_element(place)
        path = match[0] if (match := _PATH.search(rule.test)) else rule.test
        texts = [text_of(element) for element in self.select(place, path)]
        return f"{path} is {'; '.join(texts)!r}" if texts else f"no {path}"


@cache
def list_profiles() -> Mapping[str, Profile]:
    """Return the profiles by name."""
    rows = [tomllib.loads(p.read_text("utf-8")) for p in sorted(FOLDER.glob("profiles/*.toml"))]
    return {
        row["name"]: Profile(**row | {"rules": [ProfileRule(**rule) for rule in row["rules"]]})
        for row in rows
    }


def open_profiles(names: Iterable[str]) -> tuple[Profile, ...]:
    """Return the named profiles. Raises UsageError for a name that is none."""
    profiles = list_profiles()
    if unknown := sorted(set(names) - profiles.keys()):
        raise UsageError(f"--profile: {unknown[0]} is none of {', '.join(profiles)}")
    return tuple(profiles[name] for name in dict.fromkeys(names))


@cache
def open_schema(file: str) -> etree.RelaxNG:
    """Return a schema by its place in templates."""
    return etree.RelaxNG(etree.parse(FOLDER.parent / file, etree.XMLParser(no_network=True)))


def text_of(element: etree._Element) -> str:
    """Return the text of an element and of what is in it, without spaces around it."""
    return str(element.xpath("string()")).strip()


def describe_element(element: etree._Element) -> str:
    """Return an element in one line: its name, attributes and text."""
    pairs = ((str(name).rpartition("}")[2], str(value)) for name, value in element.items())
    words = [name_of(element), *(f'{name}="{value}"' for name, value in pairs)]
    return f"<{' '.join(words)}> {text_of(element)}".strip()


def name_of(element: etree._Element) -> str:
    """Return the name of an element without its namespace."""
    return etree.QName(element).localname


@lru_cache(1024)
def _compile(path: str, prefixes: tuple[tuple[str, str], ...]) -> etree.XPath:
    return etree.XPath(path, namespaces=_PREFIXES | dict(prefixes))
