"""Requests: the table of verbs and arguments, the parser, and the protocol's errors.

OAI-PMH 2.0, sections 3.1 (requests), 3.3 (dates), 3.6 (errors), and 4 (verbs).
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.http.http_message import show
from functions.snapshot import oai_name
from functions.snapshot.errors import SheafError
from functions.snapshot.instant import from_datestamp

BAD_ARGUMENT = "badArgument"
BAD_TOKEN = "badResumptionToken"
BAD_VERB = "badVerb"
NO_FORMAT = "cannotDisseminateFormat"
NO_ITEM = "idDoesNotExist"
NO_RECORDS = "noRecordsMatch"
NO_FORMATS = "noMetadataFormats"
NO_SETS = "noSetHierarchy"

CODES = frozenset(
    {BAD_ARGUMENT, BAD_TOKEN, BAD_VERB, NO_FORMAT, NO_ITEM, NO_RECORDS, NO_FORMATS, NO_SETS}
)

UNREADABLE = frozenset({BAD_VERB, BAD_ARGUMENT})
"""Errors for which `<request>` has no attributes (section 3.2)."""

IDENTIFY = "Identify"
LIST_FORMATS = "ListMetadataFormats"
LIST_SETS = "ListSets"
GET_RECORD = "GetRecord"
LIST_IDENTIFIERS = "ListIdentifiers"
LIST_RECORDS = "ListRecords"


@dataclass(frozen=True, slots=True)
class OaiFault:
    """One error of a response: its code and a text for people."""

    code: str
    message: str


class OAIError(SheafError):
    """A request that the protocol answers with one or more `<error>` elements."""

    def __init__(self, *faults: OaiFault):
        if not faults or any(fault.code not in CODES for fault in faults):
            raise ValueError(f"not protocol errors: {faults}")
        super().__init__("; ".join(f"{f.code}: {f.message}" for f in faults))
        self.faults = faults

    @property
    def code(self) -> str:
        """The code of the first fault."""
        return self.faults[0].code

    @property
    def message(self) -> str:
        """The message of the first fault."""
        return self.faults[0].message


def error(code: str, message: str) -> OAIError:
    """Return the error with a single fault."""
    return OAIError(OaiFault(code, message))


@dataclass(frozen=True, slots=True)
class Verb:
    """Arguments of a verb. `exclusive` must be the only argument of its request."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    exclusive: str = ""

    @property
    def arguments(self) -> frozenset[str]:
        """All arguments of the verb."""
        return frozenset((*self.required, *self.optional, self.exclusive)) - {""}


_LIST = Verb(("metadataPrefix",), ("from", "until", "set"), "resumptionToken")

VERBS = {
    GET_RECORD: Verb(required=("identifier", "metadataPrefix")),
    IDENTIFY: Verb(),
    LIST_IDENTIFIERS: _LIST,
    LIST_FORMATS: Verb(optional=("identifier",)),
    LIST_RECORDS: _LIST,
    LIST_SETS: Verb(exclusive="resumptionToken"),
}


@dataclass(frozen=True, slots=True)
class OaiRequest:
    """A request whose arguments are all well-formed.

    `arguments` are verb and arguments as sent, for `<request>`. `start` and `end` are the instants
    of `from` and `until`, both inclusive.
    """

    verb: str
    arguments: tuple[tuple[str, str], ...]
    identifier: str | None = None
    prefix: str | None = None
    set: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    token: str | None = None


_PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")
_LAST_OF_DAY = timedelta(hours=23, minutes=59, seconds=59)


_FORMS: dict[str, tuple[Callable[[str], bool], str]] = {
    "identifier": (oai_name.is_uri, "a URI"),
    "metadataPrefix": (lambda v: bool(_PREFIX.fullmatch(v)), "a metadata prefix"),
    "set": (oai_name.is_set, "a setSpec"),
    "from": (lambda v: _instant(v) is not None, "a date YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"),
    "until": (lambda v: _instant(v) is not None, "a date YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"),
    # Other faults of a token are reported with the request's attributes, which cannot hold this
    # one.
    "resumptionToken": (lambda v: oai_name.NOT_IN_XML.search(v) is None, "a resumption token"),
}


def parse(pairs: Sequence[tuple[str, str]]) -> OaiRequest:
    """Return the request that decoded key-value pairs form.

    Raises OAIError: badVerb alone, or one badArgument for each fault.
    """
    verb = _verb([value for key, value in pairs if key == "verb"])
    arguments = [(key, value) for key, value in pairs if key != "verb"]
    messages = [*_shape(verb, arguments), *_values(verb, dict(arguments))]
    if messages:
        raise OAIError(*(OaiFault(BAD_ARGUMENT, message) for message in messages))
    values = dict(arguments)
    return OaiRequest(
        verb=verb,
        arguments=(("verb", verb), *arguments),
        identifier=values.get("identifier"),
        prefix=values.get("metadataPrefix"),
        set=values.get("set"),
        start=_instant(values["from"]) if "from" in values else None,
        end=_instant(values["until"], whole_day=True) if "until" in values else None,
        token=values.get("resumptionToken"),
    )


def _verb(values: Sequence[str]) -> str:
    if not values:
        raise error(BAD_VERB, "The verb is missing; expected one of " + ", ".join(VERBS) + ".")
    if len(values) > 1:
        raise error(BAD_VERB, "The verb is repeated.")
    if values[0] not in VERBS:
        raise error(
            BAD_VERB, f"{show(values[0])} is not a verb; expected one of {', '.join(VERBS)}."
        )
    return values[0]


def _shape(name: str, arguments: Sequence[tuple[str, str]]) -> list[str]:
    """Return messages about missing, unknown, repeated or empty arguments (section 3.6)."""
    verb = VERBS[name]
    count = Counter(key for key, _ in arguments)
    messages = [
        f"{name} has no argument {show(key)}." for key in count if key not in verb.arguments
    ]
    messages += [f"The argument {key} is repeated." for key in count if count[key] > 1]
    messages += [
        f"The argument {key} is empty." for key in dict.fromkeys(k for k, v in arguments if not v)
    ]
    if verb.exclusive and verb.exclusive in count:
        if len(count) > 1:
            messages.append(f"{verb.exclusive} cannot be combined with other arguments.")
    else:
        messages += [f"The argument {key} is missing." for key in verb.required if key not in count]
    # A client may send a thousand made-up names, so the number of messages is limited.
    return messages[:8]


def _values(name: str, values: dict[str, str]) -> list[str]:
    """Return messages about malformed values; empty ones were already reported."""
    messages = []
    for key in sorted(VERBS[name].arguments & values.keys()):
        test, expected = _FORMS.get(key, (lambda _: True, ""))
        if values[key] and not test(values[key]):
            messages.append(f"{key} is {show(values[key])}, expected {expected}.")
    return messages or _between(values.get("from", ""), values.get("until", ""))


def _between(first: str, last: str) -> list[str]:
    """Return messages about the two dates taken together (section 2.7.1)."""
    start, end = _instant(first), _instant(last, whole_day=True)
    if start is None or end is None:
        return []
    if len(first) != len(last):
        return ["from and until have different granularities."]
    if start > end:
        return ["from is later than until."]
    return []


def _instant(text: str, *, whole_day: bool = False) -> datetime | None:
    """Return the instant of a date in either granularity (section 3.3), or None."""
    when = from_datestamp(text)
    return when + _LAST_OF_DAY if when and whole_day and len(text) == 10 else when
