"""The table of configuration keys: name, default, valid values and meaning, one row each."""

import re

from functions.config import check, content, gathering, http, key, signing, site
from functions.config.key import ConfigKey as ConfigKey
from functions.config.key import choice, flag, number, optional, row, some_of
from functions.snapshot import oai_name
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
        check.expect_list(check.is_email, 1),
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
    row(
        "repository.publisher",
        optional(check.is_text, "a text"),
        "who publishes the metadata, for catalogues of data",
    ),
    row(
        "repository.base_url",
        optional(check.is_base_url, "an http or https URL without user, ? and #"),
        "OAI base URL; empty: the address of the request",
    ),
    row(
        "repository.earliest_datestamp",
        optional(check.is_second, "a text such as 2000-01-01T12:00:00Z"),
        "earliestDatestamp of Identify, if earlier than the first publish; empty: the first "
        "publish",
    ),
    ConfigKey(
        "identify.friends",
        [],
        check.expect_list(check.is_friend),
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
        check.expect_table(check.POLICIES.__contains__, check.is_statement),
        f"a table with {', '.join(check.POLICIES)}, each a text or an http or https URL",
        "content and policies in the eprints description of Identify",
    ),
    ConfigKey(
        "identify.descriptions",
        [],
        check.expect_list(check.is_description),
        "a list of texts. Each is one well-formed XML element with its namespace declarations and "
        "xsi:schemaLocation, without XML declaration and DOCTYPE, and not in the namespace of the "
        "protocol or of oai-identifier",
        "further descriptions of Identify, copied verbatim",
        check.description_problem,
    ),
    row(
        "identify.data_url",
        gathering.PLACE,
        "public address of the store's files; empty: Identify names no addresses",
    ),
    row(
        "rights.statement",
        optional(check.is_notice, check.NOTICE),
        "rights of the metadata, stated in each record; empty: no statement",
    ),
    ConfigKey(
        "rights.sets",
        {},
        check.expect_table(oai_name.is_set, check.is_notice),
        "a table from set specifications to such texts or URLs",
        "rights of the records of a set, instead of rights.statement",
    ),
    row(
        "provenance.origin",
        gathering.PLACE,
        "address of the archive files, stated in each record; empty: no statement",
    ),
    ConfigKey(
        "store.uri",
        "store",
        check.is_store,
        "a folder or s3://bucket/prefix",
        "address of the store; a folder is relative to sheaf.toml",
    ),
    row(
        "store.endpoint",
        optional(
            lambda v: check.is_text(v) and authority.is_endpoint(v), authority.ENDPOINT_EXPECTED
        ),
        "S3-compatible server; empty: AWS_ENDPOINT_URL, else AWS",
    ),
    ConfigKey(
        "store.region",
        "",
        lambda v: isinstance(v, str) and bool(re.fullmatch(r"[a-z0-9-]*", v)),
        "a region such as eu-central-1, or empty",
        "region of the bucket; empty: AWS_REGION or the profile's region, else us-east-1",
    ),
    row(
        "store.addressing",
        choice("auto", "path", "virtual"),
        "place of the bucket's name in the URL: path, or host name (virtual); auto: virtual for "
        "AWS",
    ),
    row(
        "store.retry_seconds",
        number(60, 0, 3600, "seconds"),
        "how long a request to S3 is retried while the server is busy or unreachable",
    ),
    row(
        "store.cache",
        number(1024, 16, 1_048_576, "megabytes"),
        "approximate size of the disk cache of a bucket for `sheaf serve`",
    ),
    row("pages.records", number(1000, 1, 10_000), "records in one page of ListRecords"),
    row("pages.identifiers", number(2000, 1, 20_000), "headers in one page of ListIdentifiers"),
    row("pages.sets", number(1000, 1, 10_000), "sets in one page of ListSets"),
    row(
        "formats.templates",
        optional(check.is_text, "a folder"),
        "folder of your own metadata formats (docs/reference/oai-pmh.md, Formats); relative to "
        "sheaf.toml",
    ),
    ConfigKey(
        "formats.offered",
        [],
        check.expect_list(check.is_prefix),
        "a list of metadata prefixes",
        "metadata formats to offer, in this order; oai_dc is always offered; empty: all",
    ),
    row(
        "documents.include",
        some_of([], "redirects", "errors"),
        "captures to publish besides successful ones: redirects (status 3xx), errors (4xx and 5xx)",
    ),
    row(
        "documents.titles",
        flag(True),
        "read title, language and encoding of pages; false: ingest is faster",
    ),
    row(
        "search.words",
        flag(True),
        "publish the words of titles, URLs and names, for the full-text search",
    ),
    row(
        "sets.by",
        some_of(["collection", "domain", "mime"], "collection", "domain", "mime"),
        "sets to make: by collection (`ingest --collection`), registered domain and host, media "
        "type",
    ),
    ConfigKey(
        "sets.names",
        {},
        check.expect_table(oai_name.is_set, check.is_text),
        "a table from set specifications to names",
        "setName of a set, instead of the generated one",
    ),
    ConfigKey(
        "sets.descriptions",
        {},
        check.expect_table(oai_name.is_set, check.is_prose),
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
    row(
        "publish.lead",
        number(2, 1, 3600, "seconds"),
        "time from a publish to the instant when it takes effect",
    ),
    ConfigKey(
        "publish.dumps",
        [],
        check.expect_list(check.is_prefix),
        "a list of jsonl and metadata prefixes, without repetition",
        "formats that each publish writes dumps in, below `dumps/` in the store",
    ),
    row(
        "publish.tables",
        flag(True),
        "each publish describes its data files as tables of Iceberg, below `tables/`",
    ),
    row(
        "publish.memory",
        number(2048, 256, 1_048_576, "megabytes"),
        "memory of the database of a publish; larger data is sorted on disk, in `TMPDIR`",
    ),
    ConfigKey(
        "harvest.repositories",
        {},
        check.are_repositories,
        "a table from names (letters, digits, - and _) to lists of different base URLs",
        "repositories that are harvested: the present base URL of each, then former ones",
    ),
    *signing.SIGN_KEYS,
    *http.SERVE_KEYS,
    *gathering.REPEC_KEYS,
    *http.CLIENT_KEYS,
    *gathering.GATHER_KEYS,
    *gathering.FILESET_KEYS,
    *content.CONTENT_KEYS,
    *site.SITE_KEYS,
)
