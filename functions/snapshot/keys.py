"""The keys of the configuration: name, default, what a value must be, meaning; one row each."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from functions.snapshot import description, endpoint, rule, value


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


_FLAG, _YES_NO = value.is_flag, "true or false"

KEYS: tuple[Key, ...] = (
    Key(
        "repository.name",
        "An unnamed repository",
        value.is_text,
        "a text",
        "repositoryName of Identify",
    ),
    Key(
        "repository.admin_emails",
        ["admin@example.org"],
        value.is_emails,
        "a list of one or more e-mail addresses",
        "adminEmail of Identify",
    ),
    Key(
        "repository.namespace",
        "example.org",
        value.is_namespace,
        "a domain name such as archive.example.org",
        "namespace of the OAI identifiers; not to be changed once published",
    ),
    Key(
        "repository.base_url",
        "",
        lambda v: v == "" or value.is_base_url(v),
        "an http or https URL without user, ? and #, or empty",
        "the OAI base URL; empty: the address under which the request came",
    ),
    Key(
        "repository.earliest_datestamp",
        "",
        lambda v: v == "" or value.is_second(v),
        "a text such as 2000-01-01T12:00:00Z, or empty",
        "earliestDatestamp of Identify, where earlier than the first publish; empty: that one",
    ),
    Key(
        "identify.friends",
        [],
        description.are_friends,
        "a list of http or https URLs without ? and #",
        "base URLs of other repositories, for harvesters that look for more",
    ),
    Key(
        "identify.branding",
        {},
        description.is_branding,
        "a table of icon (a URL), and perhaps icon_link, icon_title, icon_width, icon_height; "
        "rendering: a list of tables of url, namespace and type (such as text/xsl)",
        "an icon to show beside the records, and style sheets for metadata",
    ),
    Key(
        "identify.eprints",
        {},
        description.are_policies,
        f"a table of {', '.join(description.POLICIES)}, each a text or an http or https URL",
        "content and policies as the e-prints community tells them",
    ),
    Key(
        "identify.descriptions",
        [],
        description.are_elements,
        "a list of texts, each one well-formed XML element that declares its namespaces, is not "
        "in the protocol's or the oai-identifier's, and comes without declaration and DOCTYPE",
        "further descriptions of Identify, given as they are",
    ),
    Key(
        "identify.data_url",
        "",
        lambda v: v == "" or description.is_place(v),
        "an http or https URL without ? and #, s3://bucket/prefix, or empty",
        "where the public can read the store's files; empty: Identify names no addresses",
    ),
    Key(
        "rights.statement",
        "",
        lambda v: v == "" or description.is_notice(v),
        f"a text of up to {description.LONGEST_NOTICE} characters or an http or https URL, "
        "or empty",
        "what may be done with the metadata, told with each record; empty: nothing is told",
    ),
    Key(
        "rights.sets",
        {},
        description.are_notices,
        "a table from set specifications to such texts or URLs",
        "the same for records within a set, in place of rights.statement",
    ),
    Key(
        "provenance.origin",
        "",
        lambda v: v == "" or description.is_place(v),
        "an http or https URL without ? and #, s3://bucket/prefix, or empty",
        "where the archive files lie, told with each record; empty: nothing is told",
    ),
    Key(
        "store.uri",
        "store",
        value.is_store,
        "a folder or s3://bucket/prefix",
        "where the store lies; a folder is seen from sheaf.toml",
    ),
    Key(
        "store.endpoint",
        "",
        lambda v: v == "" or (value.is_text(v) and endpoint.is_valid(v)),
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
        value.between(0, 3600),
        "seconds from 0 to 3600",
        "how long a request to S3 is tried again while the server is busy or cannot be reached",
    ),
    Key(
        "store.cache",
        1024,
        value.between(16, 1_048_576),
        "megabytes from 16",
        "about how much of a bucket `sheaf serve` keeps on this machine's disk (see docs/store.md)",
    ),
    Key(
        "pages.records",
        1000,
        value.between(1, 10_000),
        "a number from 1 to 10000",
        "records of one page of ListRecords",
    ),
    Key(
        "pages.identifiers",
        2000,
        value.between(1, 20_000),
        "a number from 1 to 20000",
        "headers of one page of ListIdentifiers",
    ),
    Key(
        "pages.sets",
        1000,
        value.between(1, 10_000),
        "a number from 1 to 10000",
        "sets of one page of ListSets",
    ),
    Key(
        "formats.templates",
        "",
        lambda v: v == "" or value.is_text(v),
        "a folder, or empty",
        "metadata formats of one's own (docs/oai-pmh.md, Formats); seen from sheaf.toml",
    ),
    Key(
        "formats.offered",
        [],
        value.is_prefixes,
        "a list of metadata prefixes",
        "the formats that are offered, in order, oai_dc always; empty: all",
    ),
    Key("documents.redirects", False, _FLAG, _YES_NO, "publish captures with a 3xx status"),
    Key("documents.errors", False, _FLAG, _YES_NO, "publish captures with a 4xx or 5xx status"),
    Key(
        "documents.titles",
        True,
        _FLAG,
        _YES_NO,
        "read pages for their title, language and encoding; without, ingest is faster",
    ),
    Key("sets.collection", True, _FLAG, _YES_NO, "sets by collection (`ingest --collection`)"),
    Key("sets.domain", True, _FLAG, _YES_NO, "sets by registered domain, then host"),
    Key("sets.mime", True, _FLAG, _YES_NO, "sets by media type"),
    Key(
        "sets.names",
        {},
        value.is_names,
        "a table from set specifications to names",
        "setName where the made one is not good enough",
    ),
    Key(
        "sets.descriptions",
        {},
        value.is_descriptions,
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
        value.between(1, 3600),
        "seconds from 1 to 3600",
        "how far ahead the instant of a publish's effect is chosen",
    ),
    Key(
        "publish.memory",
        2048,
        value.between(256, 1_048_576),
        "megabytes from 256",
        "memory of the database of a publish; what is larger is sorted on disk, below `TMPDIR`",
    ),
    Key(
        "serve.pointer_seconds",
        2,
        value.between(0, 30),  # the pointer remembers a snapshot for a minute
        "seconds from 0 to 30",
        "how long a reader keeps the pointer before it reads it anew",
    ),
    Key(
        "serve.clock_allowance",
        5,
        value.between(1, 20),  # an expiry's lease has half a minute for skewed clocks
        "seconds from 1 to 20",
        "how far responseDate is set back: more than twice the clock skew to be tolerated",
    ),
    Key(
        "serve.cache_seconds",
        86_400,
        value.between(0, 31_536_000),
        "seconds from 0 to 31536000",
        "how long caches may keep pages that do not change; 0: they have to ask each time",
    ),
    Key(
        "serve.concurrent",
        32,
        value.between(1, 1000),
        "a number from 1 to 1000",
        "requests that are answered at once; one more is told 503",
    ),
    Key(
        "serve.retry_seconds",
        30,
        value.between(1, 3600),
        "seconds from 1 to 3600",
        "Retry-After of a 503: when a harvester is to ask again",
    ),
    Key(
        "serve.access_log",
        "-",
        lambda v: v == "" or value.is_text(v),
        "a file, - or empty",
        "where `sheaf serve` logs requests; -: standard error; empty: nowhere",
    ),
)
