"""A model of OAI-PMH 2.0: what a right answer to a request is, whoever gives it.

Written from the protocol's text, whose sections the numbers are, and from nothing of this program:
it imports the standard library, and syntax.py, which is a part of it. It takes the raw request and
a plain description of the repository, and has no pages, snapshots or tokens' insides: of a token it
knows what is left of the list if the repository gave it, and nothing otherwise.

Where the protocol leaves a choice there are several outcomes, each of which is right.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.functions.oai import syntax

FORM = "application/x-www-form-urlencoded"
_VERB, _ARGUMENT = "badVerb", "badArgument"
LONGEST = 65_536
"""Characters of query and body together that a repository must read; more it may refuse."""

_LISTS = (
    frozenset({"metadataPrefix"}),
    frozenset({"from", "until", "set"}),
    "resumptionToken",
)
VERBS = {
    "Identify": (frozenset(), frozenset(), ""),
    "ListMetadataFormats": (frozenset(), frozenset({"identifier"}), ""),
    "ListSets": (frozenset(), frozenset(), "resumptionToken"),
    "GetRecord": (frozenset({"identifier", "metadataPrefix"}), frozenset(), ""),
    "ListIdentifiers": _LISTS,
    "ListRecords": _LISTS,
}
"""Section 4: required arguments, optional ones, and the exclusive one."""


@dataclass(frozen=True)
class Record:
    """An item's record: datestamp to the second, its own sets, the formats it can be had in."""

    identifier: str
    datestamp: str
    deleted: bool = False
    sets: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset({"oai_dc"})

    def within(self, spec: str) -> bool:
        """Tell whether the record is in the set or in one below it (2.6)."""
        return any(own == spec or own.startswith(spec + ":") for own in self.sets)


@dataclass(frozen=True)
class Repository:
    """What a repository has. `earliest` is the floor of all datestamps, of past ones too."""

    records: frozenset[Record]
    sets: frozenset[str]
    formats: frozenset[str]
    earliest: str

    def record(self, identifier: str) -> Record | None:
        return next((r for r in self.records if r.identifier == identifier), None)


@dataclass(frozen=True)
class Ask:
    """A request as it came. `broken` is a body whose transport coding cannot be undone."""

    method: str = "GET"
    query: str = ""
    body: bytes = b""
    content_type: str = ""
    broken: bool = False


@dataclass(frozen=True)
class Rest:
    """What a token that the repository gave stands for: what of a list is left, and came before."""

    verb: str
    left: frozenset
    before: int
    prefix: str = ""


@dataclass(frozen=True)
class Outcome:
    """A right answer: errors that must be there and that may, or else the content.

    `attributes` are those of <request>. `content` is what the verb is about: records of the whole
    list or its rest, setSpecs, prefixes, the one record; None for Identify. It does not count
    beside errors. `statuses` are those of HTTP; but for 200 nothing else counts.
    """

    required: frozenset[str] = frozenset()
    tolerated: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=dict)
    content: frozenset | None = None
    statuses: frozenset[int] = frozenset({200})

    def allows(self, codes: set[str]) -> bool:
        """Tell whether an answer may have these errors."""
        return self.required <= codes <= self.required | self.tolerated


def expected(ask: Ask, repository: Repository, given: Mapping[str, Rest]) -> Sequence[Outcome]:
    """Return the right answers to `ask`; `given` are the tokens that the repository gave."""
    unread = [Outcome(frozenset(codes)) for codes in ({_VERB}, {_ARGUMENT}, {_VERB, _ARGUMENT})]
    texts = [ask.query.encode("utf-8", "surrogatepass")]
    if ask.method == "POST" and ask.body:
        media = ask.content_type.partition(";")[0].strip(" \t").lower()
        if ask.broken or media != FORM:  # 3.1.1.2
            return unread
        texts.append(ask.body)
    if sum(map(len, texts)) > LONGEST:
        statuses = frozenset({200, 413, 414})
        return [Outcome(u.required, statuses=statuses) for u in unread]
    pairs = [pair for text in texts for pair in syntax.decoded(text)]
    verbs = [value for name, value in pairs if name == "verb"]
    if len(verbs) != 1 or verbs[0] not in VERBS:  # 3.6: missing, repeated, illegal
        return [Outcome(frozenset({_VERB}), frozenset({_ARGUMENT}))]
    verb = str(verbs[0])
    arguments = [(name, value) for name, value in pairs if name != "verb"]
    if not _legal(verb, arguments):
        return [Outcome(frozenset({_ARGUMENT}))]
    values = {str(name): str(value) for name, value in arguments}
    outcome = _content(verb, values, repository, given)
    outcome = replace(outcome, attributes={"verb": verb, **values})
    return [outcome] if _settled(values) else [Outcome(frozenset({_ARGUMENT})), outcome]


def _legal(verb: str, arguments: Sequence[tuple[str | None, str | None]]) -> bool:
    """Tell whether a request has none of the faults that are badArgument without a choice (3.6)."""
    required, optional, exclusive = VERBS[verb]
    names = [name for name, _ in arguments]
    is_alone = names == [exclusive] != [""]
    if not is_alone and not required <= {*names} <= required | optional:
        return False
    if len({*names}) < len(names):
        return False
    if not all(_fits(str(name), value) for name, value in arguments):
        return False
    values = {str(name): str(value) for name, value in arguments}
    start, end = values.get("from"), values.get("until")
    # They have one granularity, and are not reversed (2.7.1).
    return start is None or end is None or (len(start) == len(end) and start <= end)


def _fits(name: str, value: str | None) -> bool:
    """Tell whether a value has the form that its argument asks for."""
    # What is no character of XML cannot be echoed as it was sent, so no other error is right.
    if value is None or syntax.NOT_XML.search(value):
        return False
    if name in ("from", "until"):
        return syntax.is_date(value)
    if name == "metadataPrefix":
        return syntax.PREFIX.fullmatch(value) is not None
    if name == "set":
        return syntax.SPEC.fullmatch(value) is not None
    # An empty token may be told as a bad one, too: see below.
    return name == "resumptionToken" or value != ""


def _settled(values: Mapping[str, str]) -> bool:
    """Tell whether no value is one of those that a repository may call syntactically wrong or not.

    An identifier must be a URI (2.4), but what passes for one depends on whom one asks: the URI
    syntax, the schema's anyURI, or libraries. A token's form is the repository's own affair; but
    what a token that XML has trouble with, or an empty one, is, the text does not say.
    """
    token = values.get("resumptionToken", "x")
    return (
        syntax.is_plainly_uri(values.get("identifier", "a:b"))
        and syntax.PLAIN.fullmatch(token) is not None
    )


def _content(
    verb: str, values: Mapping[str, str], repository: Repository, given: Mapping[str, Rest]
) -> Outcome:
    """Return the right answer to a request without such faults, but for the attributes."""
    is_flat = not repository.sets and (verb == "ListSets" or "set" in values)  # 3.6
    without_sets = frozenset({"noSetHierarchy"} if is_flat else ())
    if "resumptionToken" in values:
        rest = given.get(values["resumptionToken"])
        if rest is None or rest.verb != verb:
            return Outcome(frozenset({"badResumptionToken"}), without_sets)
        return Outcome(content=rest.left)
    if verb == "Identify":
        return Outcome()
    if verb == "ListSets":
        return Outcome(without_sets, content=repository.sets)
    record = repository.record(values.get("identifier", ""))
    offered = repository.formats if record is None else record.formats
    codes = {"idDoesNotExist"} if "identifier" in values and record is None else set()
    if verb == "ListMetadataFormats":
        without_formats = set() if offered else {"noMetadataFormats"}
        return Outcome(frozenset(codes or without_formats), content=offered)
    if values["metadataPrefix"] not in offered:
        codes.add("cannotDisseminateFormat")
    if verb == "GetRecord":
        return Outcome(frozenset(codes), content=frozenset({record} - {None}))
    if codes or is_flat:
        # That nothing matches such a request, too, may be told or not.
        return Outcome(without_sets | codes, frozenset({"noRecordsMatch"}))
    content = listed(values, repository)
    return Outcome(frozenset(() if content else {"noRecordsMatch"}), content=content)


def listed(values: Mapping[str, str], repository: Repository) -> frozenset[Record]:
    """Return the records that a list by those arguments has, deleted ones among them (2.7)."""
    first, last = values.get("from", "0001-01-01"), values.get("until", "9999-12-31")
    if len(first) == 10:
        first += "T00:00:00Z"
    if len(last) == 10:
        last += "T23:59:59Z"
    return frozenset(
        record
        for record in repository.records
        if values["metadataPrefix"] in record.formats
        and first <= record.datestamp <= last
        and ("set" not in values or record.within(values["set"]))
    )
