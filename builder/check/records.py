"""Checks of records: whether what a record says can be relied on, in any format.

A check returns what is wrong, "" if nothing is, and None if it does not apply. A record has at most
one finding of a check.
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from lxml import etree

from builder.check.checks import CheckCard
from builder.check.profiles import (
    Profile,
    describe_element,
    list_profiles,
    name_of,
    open_schema,
    text_of,
)
from builder.check.sample import SampledRecord
from builder.check.values import (
    is_date,
    is_language,
    is_link,
    is_plain,
    is_public,
    is_right_encoding,
    is_whole,
)
from builder.http.secrets import clean_text

_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+"
)
_OAI = re.compile(r"oai:([A-Za-z0-9][\w-]*(?:\.[A-Za-z0-9][\w-]*)+):\S+", re.ASCII)
_BREAKS = ("br", "hr", "lb", "pb")
_MOST_ELEMENTS, _FEW_ELEMENTS = 20_000, 200
"""Elements of a record that is validated, in quadratic time, and whose fault is looked for."""
_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True)
class _RecordReading:
    """A record that was parsed, and the same with the newest namespace of its format.

    `declared` is the row of its format in ListMetadataFormats.
    """

    root: etree._Element
    modern: etree._Element
    declared: Mapping[str, str]
    profile: Profile | None

    @cached_property
    def namespace(self) -> str:
        """The namespace of the root."""
        return etree.QName(self.root).namespace or ""

    @cached_property
    def schema(self) -> str | None:
        """The address of the schema of the namespace, by xsi:schemaLocation."""
        words = self.root.get(f"{_XSI}schemaLocation", "").split()
        return dict(zip(words[::2], words[1::2], strict=False)).get(self.namespace)

    @cached_property
    def texts(self) -> Sequence[tuple[str, str]]:
        """Names and values of elements and attributes."""
        return [
            (etree.QName(str(name)).localname, str(text))
            for element in self.root.iter(etree.Element)
            for name, text in chain([(element.tag, element.text)], element.items())
            if text and text.strip()
        ]

    def select(self, name: str) -> Sequence[etree._Element] | None:
        """Return the elements of a field of the profile, None if it has no such field."""
        path = self.profile.fields.get(name) if self.profile else None
        return self.profile.select(self.modern, path) if self.profile and path else None


def check_records(
    records: Iterable[SampledRecord],
    profiles: Sequence[Profile],
    card: CheckCard,
    formats: Iterable[Mapping[str, str]],
    identify: Mapping[str, str],
) -> None:
    """Note on the card what is wrong with records, and which rules of profiles they break.

    `formats` are rows of ListMetadataFormats, `identify` the fields of Identify, of which
    repositoryIdentifier is used: the name that identifiers of the scheme oai begin with.
    """
    declared = {row.get("metadataPrefix", ""): row for row in formats}
    repository = identify.get("repositoryIdentifier", "")
    for record in records:
        name, where = record.identifier, (record.identifier, record.request)
        card.hold("R01", _URI.fullmatch(name), f"{name!r} is no URI", *where)
        if name.startswith("oai:"):
            domain = (match := _OAI.fullmatch(name)) and match[1].lower()
            right = domain and domain == (repository.lower() or domain)
            seen = f"{name} is not oai:{repository or 'DOMAIN'}:NAME"
            card.hold("R02", right, seen, *where)
        if not record.deleted:
            card.hold("R03", record.metadata, "a record without metadata is not deleted", *where)
        if not record.deleted and record.metadata:
            row = declared.get(record.prefix, {})
            for number, seen in _check_metadata(record.metadata, profiles, row):
                card.hold(number, not seen, seen, *where)
    for profile in profiles:
        rules = profile.checks().keys()
        lacks = "what the rule is about" if rules & card.applied else "this format"
        card.leave(f"no record of the sample has {lacks}", *rules)


def _check_metadata(
    metadata: bytes, profiles: Sequence[Profile], declared: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the number of each check that applies, and what is wrong or ""."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, huge_tree=True
    )
    try:
        root = modern = etree.fromstring(metadata, parser)
    except etree.XMLSyntaxError as error:
        yield "R08", f"cannot be read: {error}"
        return
    namespace = etree.QName(root).namespace
    profile = next((p for p in list_profiles().values() if namespace in p.namespaces), None)
    if profile is not None:
        newer = profile.modernise(metadata)
        modern = root if newer == metadata else etree.fromstring(newer, parser)
        profile = profile if profile.select(modern, profile.record) else None
    reading = _RecordReading(root, modern, declared, profile)
    # Profiles have a rule of their own for titles; a schema would repeat R04 and R07 less clearly.
    skipped = {"R09"} if profile in profiles else set()
    for number, check in _CHECKS.items():
        if number not in skipped and (seen := check(reading)) is not None:
            yield number, seen
            skipped |= {"R08"} if seen and number in ("R04", "R07") else set()
    for number, (name, is_right) in _VALUES.items():
        texts = [(name_of(e), text) for e in reading.select(name) or () if (text := text_of(e))]
        if texts:
            yield number, _first_wrong(texts, is_right)
    for number, is_right in _TEXTS.items():
        yield number, _first_wrong(reading.texts, is_right)
    if profile and profile in profiles:
        yield from profile.judge(modern)


def _first_wrong(texts: Iterable[tuple[str, str]], is_right: Callable[[str], bool]) -> str:
    return clean_text(next((f"{name}: {text}" for name, text in texts if not is_right(text)), ""))


_CHECKS: dict[str, Callable[[_RecordReading], str | None]] = {}
"""Checks of a whole record by number."""


def _number(number: str) -> Callable[[Callable[[_RecordReading], str | None]], None]:
    """Enter a function as a check."""
    return lambda check: _CHECKS.update({number: check})


@_number("R04")
def _check_namespace(reading: _RecordReading) -> str | None:
    declared, profile = reading.declared.get("metadataNamespace"), reading.profile
    if not declared:
        return None
    # A format may come bare or in a wrapper, and be declared as either.
    right = declared in (profile.namespaces if profile else [reading.namespace])
    return "" if right else f"{reading.namespace or 'none'} in place of {declared}"


@_number("R05")
def _check_location(reading: _RecordReading) -> str:
    return "" if reading.schema else f"no schemaLocation for {reading.namespace or 'no namespace'}"


@_number("R06")
def _check_declared_schema(reading: _RecordReading) -> str | None:
    url, declared = reading.schema, reading.declared.get("schema")
    if not url or not declared:
        return None
    right = url.partition("://")[2] == declared.partition("://")[2]
    return "" if right else f"{url} in place of {declared}"


@_number("R07")
def _check_foreign(reading: _RecordReading) -> str | None:
    elements = reading.select("foreign")
    if elements is None:
        return None
    return f"{elements[0].tag} is not of this format" if elements else ""


@_number("R08")
def _check_schema(reading: _RecordReading) -> str | None:
    if reading.profile is None or reading.modern is not reading.root:
        return None  # no schema, or that of a newer version of the format
    count, schema = sum(1 for _ in reading.root.iter()), open_schema(reading.profile.schema)
    if count > _MOST_ELEMENTS:
        return None
    if schema.validate(reading.root):
        return ""
    message = "; ".join(error.message for error in list(schema.error_log)[:2]) or "not valid"
    if count > _FEW_ELEMENTS:
        return message
    root = copy.deepcopy(reading.root)
    [record] = reading.profile.select(root, reading.profile.record)[:1] or [root]
    culprit = _find_culprit(schema, root, record)
    if culprit is None:
        return message
    seen = f"it would be valid without {describe_element(culprit)}"
    return f"{message}; {seen}" if len(culprit) else seen


def _find_culprit(
    schema: etree.RelaxNG, root: etree._Element, record: etree._Element
) -> etree._Element | None:
    """Return the innermost element of a record without which its document would be valid.

    Messages of schemas with much choice name another element than the one that is wrong.
    """
    culprit, children = None, [*record]
    while children:
        child = children.pop(0)
        parent = child.getparent()
        assert parent is not None
        place = parent.index(child)
        parent.remove(child)
        if schema.validate(root):
            culprit, children = child, [*child]
        parent.insert(place, child)
    return culprit


@_number("R09")
def _check_title(reading: _RecordReading) -> str | None:
    titles = reading.select("title")
    return None if titles is None else "" if any(map(text_of, titles)) else "no title"


@_number("R10")
def _check_empty(reading: _RecordReading) -> str:
    for element in reading.root.iter(etree.Element):
        around = (element.text, element.tail, getattr(element.getparent(), "text", None))
        says = len(element) or any((text or "").strip() for text in around)
        says = says or name_of(element) in _BREAKS
        if not says and set(element.keys()) <= {_LANG}:
            return f"<{name_of(element)}> is empty"
    return ""


@_number("R11")
def _check_repeated(reading: _RecordReading) -> str:
    """Compare siblings; elements with attributes of their own, as in MARC, may be repeated."""
    for parent in (reading.root, *reading.root.iterchildren(etree.Element)):
        keys = set()
        for child in parent.iterchildren(etree.Element):
            key = tuple(
                (each.tag, *sorted(map(str, each.items())), (each.text or "").strip())
                for each in child.iter(etree.Element)
            )
            own = any(str(name)[0] != "{" for name in child.keys())  # noqa: SIM118 - no mapping
            if key in keys and not own and text_of(child):
                return f"<{name_of(child)}> {text_of(child)} twice"
            keys.add(key)
    return ""


@_number("R13")
def _check_tags(reading: _RecordReading) -> str | None:
    """Check xml:lang; where there is a schema, it says whether a value has the form of one."""
    codes = {code for e in reading.root.iter(etree.Element) if (code := e.get(_LANG))}
    tags = sorted(code for code in codes if not reading.profile or _TAG.fullmatch(code))
    return _first_wrong((("xml:lang", code) for code in tags), is_language) or None


_VALUES: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "R12": ("links", is_link),
    "R13": ("languages", is_language),
    "R14": ("dates", is_date),
}
"""Checks of the values of a field of profiles."""
_TEXTS: Mapping[str, Callable[[str], bool]] = {
    "R15": is_whole,
    "R16": is_right_encoding,
    "R17": is_plain,
    "R18": is_public,
}
"""Checks of each text."""
