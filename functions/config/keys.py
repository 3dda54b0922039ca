"""The table of configuration keys: name, default, valid values and meaning, one row each."""

import re

from functions.config import check, content, gathering, http, key
from functions.config.key import ConfigKey as ConfigKey
from functions.url import authority

KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "repository.name",
        "An unnamed repository",
        check.is_text,
        "a text",
        "repositoryName of Identify",
    ),
    ConfigKey(
        "repository.admin_emails",
        ["admin@example.org"],
        check.is_emails,
        "a list of one or more e-mail addresses",
        "adminEmail of Identify",
    ),
    ConfigKey(
        "repository.namespace",
        "example.org",
        check.is_namespace,
        "a domain name such as archive.example.org",
        "namespace of the OAI identifiers; do not change it after the first publish",
    ),
    ConfigKey(
        "repository.base_url",
        "",
        lambda v: v == "" or check.is_base_url(v),
        "an http or https URL without user, ? and #, or empty",
        "OAI base URL; empty: the address of the request",
    ),
    ConfigKey(
        "repository.earliest_datestamp",
        "",
        lambda v: v == "" or check.is_second(v),
        "a text such as 2000-01-01T12:00:00Z, or empty",
        "earliestDatestamp of Identify, if earlier than the first publish; empty: the first "
        "publish",
    ),
    ConfigKey(
        "identify.friends",
        [],
        check.are_friends,
        "a list of http or https URLs without ? and #",
        "base URLs of other repositories, announced to harvesters",
    ),
    ConfigKey(
        "identify.branding",
        {},
        check.is_branding,
        "a table with icon (a URL) and optionally icon_link, icon_title, icon_width, icon_height, "
        "and rendering (a list of tables with url, namespace and type, such as text/xsl)",
        "icon to show beside the records, and style sheets for metadata",
    ),
    ConfigKey(
        "identify.eprints",
        {},
        check.are_policies,
        f"a table with {', '.join(check.POLICIES)}, each a text or an http or https URL",
        "content and policies in the eprints description of Identify",
    ),
    ConfigKey(
        "identify.descriptions",
        [],
        check.are_elements,
        "a list of texts. Each is one well-formed XML element with its namespace declarations and "
        "xsi:schemaLocation, without XML declaration and DOCTYPE, and not in the namespace of the "
        "protocol or of oai-identifier",
        "further descriptions of Identify, copied verbatim",
        check.description_problem,
    ),
    ConfigKey(
        "identify.data_url",
        "",
        lambda v: v == "" or check.is_place(v),
        "an http or https URL without ? and #, s3://bucket/prefix, or empty",
        "public address of the store's files; empty: Identify names no addresses",
    ),
    ConfigKey(
        "rights.statement",
        "",
        lambda v: v == "" or check.is_notice(v),
        f"a text of up to {check.LONGEST_NOTICE} characters or an http or https URL, or empty",
        "rights of the metadata, stated in each record; empty: no statement",
    ),
    ConfigKey(
        "rights.sets",
        {},
        check.are_notices,
        "a table from set specifications to such texts or URLs",
        "rights of the records of a set, instead of rights.statement",
    ),
    ConfigKey(
        "provenance.origin",
        "",
        lambda v: v == "" or check.is_place(v),
        "an http or https URL without ? and #, s3://bucket/prefix, or empty",
        "address of the archive files, stated in each record; empty: no statement",
    ),
    ConfigKey(
        "store.uri",
        "store",
        check.is_store,
        "a folder or s3://bucket/prefix",
        "address of the store; a folder is relative to sheaf.toml",
    ),
    ConfigKey(
        "store.endpoint",
        "",
        lambda v: v == "" or (check.is_text(v) and authority.is_endpoint(v)),
        f"{authority.ENDPOINT_EXPECTED}, or empty",
        "S3-compatible server; empty: AWS_ENDPOINT_URL, else AWS",
    ),
    ConfigKey(
        "store.region",
        "",
        lambda v: isinstance(v, str) and bool(re.fullmatch(r"[a-z0-9-]*", v)),
        "a region such as eu-central-1, or empty",
        "region of the bucket; empty: AWS_REGION or the profile's region, else us-east-1",
    ),
    ConfigKey(
        "store.addressing",
        "auto",
        lambda v: v in ("auto", "path", "virtual"),
        "auto, path or virtual",
        "place of the bucket's name in the URL: path, or host name (virtual); auto: virtual for "
        "AWS",
    ),
    ConfigKey(
        "store.retry_seconds",
        60,
        check.between(0, 3600),
        "seconds from 0 to 3600",
        "how long a request to S3 is retried while the server is busy or unreachable",
    ),
    ConfigKey(
        "store.cache",
        1024,
        check.between(16, 1_048_576),
        "megabytes from 16",
        "approximate size of the disk cache of a bucket for `sheaf serve`",
    ),
    ConfigKey(
        "pages.records",
        1000,
        check.between(1, 10_000),
        "a number from 1 to 10000",
        "records in one page of ListRecords",
    ),
    ConfigKey(
        "pages.identifiers",
        2000,
        check.between(1, 20_000),
        "a number from 1 to 20000",
        "headers in one page of ListIdentifiers",
    ),
    ConfigKey(
        "pages.sets",
        1000,
        check.between(1, 10_000),
        "a number from 1 to 10000",
        "sets in one page of ListSets",
    ),
    ConfigKey(
        "formats.templates",
        "",
        lambda v: v == "" or check.is_text(v),
        "a folder, or empty",
        "folder of your own metadata formats (docs/reference/oai-pmh.md, Formats); relative to "
        "sheaf.toml",
    ),
    ConfigKey(
        "formats.offered",
        [],
        check.is_prefixes,
        "a list of metadata prefixes",
        "metadata formats to offer, in this order; oai_dc is always offered; empty: all",
    ),
    ConfigKey(
        "documents.include",
        [],
        check.are_some_of("redirects", "errors"),
        "a list of redirects, errors",
        "captures to publish besides successful ones: redirects (status 3xx), errors (4xx and 5xx)",
    ),
    ConfigKey(
        "documents.titles",
        True,
        check.is_flag,
        "true or false",
        "read title, language and encoding of pages; false: ingest is faster",
    ),
    ConfigKey(
        "sets.by",
        ["collection", "domain", "mime"],
        check.are_some_of("collection", "domain", "mime"),
        "a list of collection, domain, mime",
        "sets to make: by collection (`ingest --collection`), registered domain and host, media "
        "type",
    ),
    ConfigKey(
        "sets.names",
        {},
        check.is_names,
        "a table from set specifications to names",
        "setName of a set, instead of the generated one",
    ),
    ConfigKey(
        "sets.descriptions",
        {},
        check.is_descriptions,
        "a table from set specifications to texts",
        "setDescription of a set",
    ),
    ConfigKey(
        "sets.rules",
        [],
        lambda v: key.set_rules_problem(v) is None,
        key.SET_RULES_EXPECTED,
        "your own sets, applied at ingest (docs/reference/oai-pmh.md, Rules)",
        key.set_rules_problem,
    ),
    ConfigKey(
        "publish.lead",
        2,
        check.between(1, 3600),
        "seconds from 1 to 3600",
        "time from a publish to the instant when it takes effect",
    ),
    ConfigKey(
        "publish.memory",
        2048,
        check.between(256, 1_048_576),
        "megabytes from 256",
        "memory of the database of a publish; larger data is sorted on disk, in `TMPDIR`",
    ),
    *http.SERVE_KEYS,
    *gathering.REPEC_KEYS,
    *http.CLIENT_KEYS,
    *gathering.GATHER_KEYS,
    *gathering.FILESET_KEYS,
    *content.CONTENT_KEYS,
)
