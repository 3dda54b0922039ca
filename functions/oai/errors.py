"""Errors of the OAI-PMH 2.0 protocol (section 3.6)."""

from dataclasses import dataclass

from functions.snapshot.errors import SheafError

BAD_ARGUMENT = "badArgument"
BAD_TOKEN = "badResumptionToken"
BAD_VERB = "badVerb"
NO_FORMAT = "cannotDisseminateFormat"
NO_ITEM = "idDoesNotExist"
NO_RECORDS = "noRecordsMatch"
NO_FORMATS = "noMetadataFormats"
NO_SETS = "noSetHierarchy"

CODES = frozenset(
    {
        BAD_ARGUMENT,
        BAD_TOKEN,
        BAD_VERB,
        NO_FORMAT,
        NO_ITEM,
        NO_RECORDS,
        NO_FORMATS,
        NO_SETS,
    }
)

UNREADABLE = frozenset({BAD_VERB, BAD_ARGUMENT})
"""Errors for which `<request>` has no attributes (section 3.2)."""

_LONGEST = 80


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


def show(text: str) -> str:
    """Return client input in quotes, cut to a length that suits a message."""
    return f'"{text}"' if len(text) <= _LONGEST else f'"{text[:_LONGEST]}..."'
