"""The keys of the configuration: name, default, what a value must be, meaning; one row each."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from functions.snapshot import address, endpoint, identifier, rule, setspec

_EMAIL = re.compile(r"[^\s@<>:]+@([^\s@.]+\.)+[^\s@.]+")
_URL = re.compile(r"https?://[^\s?#]+")


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the configuration: name, default, test of a value, what is expected, meaning.

    `problem` narrows down what is wrong with a value of many parts (see rule.problem).
    """

    name: str
    default: Any
    test: Callable[[Any], bool]
    expected: str
    meaning: str
    problem: Callable[[Any], tuple[str, Any, str] | None] | None = None


def _text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def _store(value: Any) -> bool:
    return _text(value) and ("://" not in value or address.is_valid(value))


def _number(low: int, high: int) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _emails(value: Any) -> bool:
    return (
        isinstance(value, list)
        and value != []
        and all(isinstance(e, str) and _EMAIL.fullmatch(e) for e in value)
    )


def _names(value: Any) -> bool:
    return isinstance(value, dict) and all(
        setspec.is_valid(spec) and _text(name) for spec, name in value.items()
    )


def _prose(value: Any) -> bool:
    return isinstance(value, str) and _text(" ".join(value.split()))


def _descriptions(value: Any) -> bool:
    return isinstance(value, dict) and all(
        setspec.is_valid(spec) and _prose(text) for spec, text in value.items()
    )


_YES_NO = "true or false"

KEYS: tuple[Key, ...] = (
    Key("repository.name", "An unnamed repository", _text, "a text", "repositoryName of Identify"),
    Key(
        "repository.admin_emails",
        ["admin@example.org"],
        _emails,
        "a list of one or more e-mail addresses",
        "adminEmail of Identify",
    ),
    Key(
        "repository.namespace",
        "example.org",
        lambda v: isinstance(v, str) and identifier.is_namespace(v),
        "a domain name such as archive.example.org",
        "namespace of the OAI identifiers; not to be changed once published",
    ),
    Key(
        "repository.base_url",
        "",
        lambda v: v == "" or (_text(v) and bool(_URL.fullmatch(v))),
        "an http or https URL without ? and #, or empty",
        "the OAI base URL; empty: the address under which the request came",
    ),
    Key(
        "store.uri",
        "store",
        _store,
        "a folder or s3://bucket/prefix",
        "where the store lies; a folder is seen from sheaf.toml",
    ),
    Key(
        "store.endpoint",
        "",
        lambda v: v == "" or (_text(v) and endpoint.is_valid(v)),
        f"{endpoint.EXPECTED}, or empty",
        "the S3-compatible server; empty: AWS, or what AWS_ENDPOINT_URL names",
    ),
    Key(
        "store.region",
        "",
        lambda v: isinstance(v, str) and bool(re.fullmatch(r"[a-z0-9-]*", v)),
        "a region such as eu-central-1, or empty",
        "the bucket's region; empty: what AWS_REGION or the profile names, else us-east-1",
    ),
    Key(
        "store.addressing",
        "auto",
        lambda v: v in ("auto", "path", "virtual"),
        "auto, path or virtual",
        "whether the bucket is named in the URL's path or in its host name; auto: host for AWS",
    ),
    Key(
        "store.retry_seconds",
        60,
        _number(0, 3600),
        "seconds from 0 to 3600",
        "how long a request to S3 is tried again while the server is busy or cannot be reached",
    ),
    Key(
        "store.cache",
        1024,
        _number(16, 1_048_576),
        "megabytes from 16",
        "about how much of a bucket `sheaf serve` keeps on this machine's disk (see docs/store.md)",
    ),
    Key(
        "pages.records",
        1000,
        _number(1, 10_000),
        "a number from 1 to 10000",
        "records of one page of ListRecords",
    ),
    Key(
        "pages.identifiers",
        2000,
        _number(1, 20_000),
        "a number from 1 to 20000",
        "headers of one page of ListIdentifiers",
    ),
    Key(
        "pages.sets",
        1000,
        _number(1, 10_000),
        "a number from 1 to 10000",
        "sets of one page of ListSets",
    ),
    Key("documents.redirects", False, _flag, _YES_NO, "publish captures with a 3xx status"),
    Key("documents.errors", False, _flag, _YES_NO, "publish captures with a 4xx or 5xx status"),
    Key("sets.collection", True, _flag, _YES_NO, "sets by collection (`ingest --collection`)"),
    Key("sets.domain", True, _flag, _YES_NO, "sets by registered domain, then host"),
    Key("sets.mime", True, _flag, _YES_NO, "sets by media type"),
    Key(
        "sets.names",
        {},
        _names,
        "a table from set specifications to names",
        "setName where the made one is not good enough",
    ),
    Key(
        "sets.descriptions",
        {},
        _descriptions,
        "a table from set specifications to texts",
        "what setDescription says of a set for people",
    ),
    Key(
        "sets.rules",
        [],
        lambda v: rule.problem(v) is None,
        rule.EXPECTED,
        "sets of your own, for what is ingested from now on (see docs/oai-pmh.md)",
        rule.problem,
    ),
    Key(
        "publish.lead",
        2,
        _number(1, 3600),
        "seconds from 1 to 3600",
        "how far ahead the instant of a publish's effect is chosen",
    ),
    Key(
        "publish.memory",
        2048,
        _number(256, 1_048_576),
        "megabytes from 256",
        "memory for sorting; what is larger is sorted on disk",
    ),
    Key(
        "serve.pointer_seconds",
        2,
        _number(0, 30),  # the pointer remembers a snapshot for a minute
        "seconds from 0 to 30",
        "how long a reader keeps the pointer before it reads it anew",
    ),
    Key(
        "serve.clock_allowance",
        5,
        _number(1, 20),  # an expiry's lease has half a minute for skewed clocks
        "seconds from 1 to 20",
        "how far responseDate is set back: more than twice the clock skew to be tolerated",
    ),
)
