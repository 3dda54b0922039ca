"""The table of configuration keys: name, default, valid values and meaning, one row each."""

import re
from dataclasses import replace
from typing import Any

from functions.config import check, gathering, harvesting, http, records, signing
from functions.config.key import (
    Field,
    choice,
    flag,
    list_of,
    number,
    optional,
    row,
    some_of,
    table_of,
)
from functions.kinds import KINDS, ROWS
from functions.snapshot import authority, oai_name

ADDRESS_FIELDS = ("identifier", "timestamp", "url", "file")
"""Fields of an address of an archived copy."""
_FIELD = re.compile(r"\{(.*?)\}")
_ROOT = re.compile(r"(https?://[^/{}]+)?/(?!/)")


def _is_address(template: Any) -> bool:
    if not isinstance(template, str):
        return False
    fields, filled = set(_FIELD.findall(template)), _FIELD.sub("x", template)
    root = _ROOT.match(template)
    return (
        root is not None
        and check.is_url(filled if root[1] else f"http://x{filled}")
        and fields <= {*ADDRESS_FIELDS}
        and not fields.isdisjoint({"identifier", "url"})
    )


CONTENT_KEYS: tuple[Field, ...] = (
    row(
        "content.serve",
        flag(False),
        "serve archived bytes at `/content`, pages as they were at `/web`, and captures at "
        "`/cdx`, `/timemap` and `/timegate`",
    ),
    row(
        "content.replay_address",
        Field(
            "",
            check.like(r"(https?://[^/?#\s]+)?"),
            "scheme and host of an http or https URL, or empty",
        ),
        "another host of this server from which archived pages are shown; empty: the same",
    ),
    row(
        "content.archives",
        list_of(check.is_store, "folders and s3://bucket/prefix"),
        "places to look for archive files by name, in this order; empty: where they were "
        "ingested. Folders are relative to sheaf.toml",
    ),
    row(
        "content.address",
        list_of(
            _is_address,
            "http or https URLs, or of paths from /, with {identifier} or {url}, and optionally "
            "{timestamp} or {file}",
        ),
        "addresses of archived copies, stated in each record: the first whose fields the record "
        "has. Paths replace the /oai of repository.base_url",
    ),
    row(
        "content.redirect_bytes",
        number(4_000_000, 0, 1 << 50, "bytes"),
        "larger objects that are stored unpacked in a bucket are redirected to a signed URL",
    ),
    row(
        "content.redirect_seconds",
        number(900, 1, 604_800, "seconds"),
        "how long a signed URL is valid",
    ),
    row(
        "content.lines",
        number(10_000, 1, 100_000),
        "lines in one response of `/cdx` and `/timemap`",
    ),
)


ROBOTS = ("pages", "none")


SITE_KEYS: tuple[Field, ...] = (
    row(
        "site.pages",
        number(1000, 0, 1_000_000, "pages"),
        "the most records that have pages of their own in `publish.site`; a store with more has at "
        "most so many overviews",
    ),
    row(
        "site.endpoint",
        flag(True),
        "the host of `publish.site` answers OAI-PMH; false for one without a router, as GitHub "
        "Pages, whose pages then lead to no answers",
    ),
    row(
        "site.replay",
        flag(False),
        "`sheaf export site` writes archived pages and TimeMaps as files, for a host with a router",
    ),
    row(
        "site.gateway",
        Field(
            "",
            check.like(r"(https?://[^?#\s]+/)?"),
            "an http or https URL with / at its end, or empty",
        ),
        "the gateway of `static-repository.xml`, to which its host and path are added; empty: "
        "`repository.base_url` is named",
    ),
    row(
        "site.records",
        choice("ranges", "files"),
        "how GetRecord is answered from files: by ranges of the pages of lists, or by a file for "
        "each record and format, for hosts whose code sees no files",
    ),
    row(
        "site.gzip",
        flag(True),
        "documents of `publish.site` have a `.gz` beside them, for hosts that send it",
    ),
    row(
        "site.language",
        Field(
            "en",
            check.like(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*"),
            "the name of a file of languages/, such as en or cs",
        ),
        "language of the pages, unless a reader chooses another",
    ),
    row(
        "site.colours",
        table_of(
            ("light", "dark").__contains__,
            check.like(r"#[0-9a-fA-F]{6}"),
            'with light and dark, colours such as "#0b57d0"',
        ),
        "colour of links and charts, for light and for dark screens",
    ),
    row(
        "site.imprint",
        optional(check.is_notice, check.NOTICE),
        "who is responsible for the pages, shown on each of them",
    ),
    row(
        "site.sitemap",
        some_of(sorted(kind.name for kind in ROWS if kind.in_sitemap), *sorted(KINDS)),
        "kinds of records that `sitemap.xml` lists; empty: no sitemap",
    ),
    row(
        "site.robots",
        choice(*ROBOTS),
        "what `robots.txt` allows crawlers: the pages, or nothing but harvesting",
    ),
)


KEYS: tuple[Field, ...] = (
    row(
        "repository.name",
        Field("An unnamed repository", check.is_text, "a text"),
        "repositoryName of Identify",
    ),
    row(
        "repository.admin_emails",
        list_of(check.is_email, "one or more e-mail addresses", ["admin@example.org"], 1),
        "adminEmail of Identify",
    ),
    row(
        "repository.namespace",
        Field("example.org", check.is_namespace, "a domain name such as archive.example.org"),
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
    row(
        "identify.friends",
        list_of(check.is_friend, "http or https URLs without ? and #"),
        "base URLs of other repositories, announced to harvesters",
    ),
    row(
        "identify.branding",
        Field(
            {},
            check.is_branding,
            "a table with icon (a URL) and optionally icon_link, icon_title, icon_width, "
            "icon_height, and rendering (a list of tables with url, namespace and type, such as "
            "text/xsl)",
        ),
        "icon to show beside the records, and style sheets for metadata",
    ),
    row(
        "identify.eprints",
        table_of(
            check.POLICIES.__contains__,
            check.is_statement,
            f"with {', '.join(check.POLICIES)}, each a text or an http or https URL",
        ),
        "content and policies in the eprints description of Identify",
    ),
    row(
        "identify.descriptions",
        replace(
            list_of(
                check.is_description,
                "texts. Each is one well-formed XML element with its namespace declarations and "
                "xsi:schemaLocation, without XML declaration and DOCTYPE, and not in the namespace "
                "of the protocol or of oai-identifier",
            ),
            problem=check.description_problem,
        ),
        "further descriptions of Identify, copied verbatim",
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
    row(
        "rights.sets",
        table_of(oai_name.is_set, check.is_notice, "from set specifications to such texts or URLs"),
        "rights of the records of a set, instead of rights.statement",
    ),
    row(
        "provenance.origin",
        gathering.PLACE,
        "address of the archive files, stated in each record; empty: no statement",
    ),
    row(
        "store.uri",
        Field("store", check.is_store, "a folder or s3://bucket/prefix"),
        "address of the store; a folder is relative to sheaf.toml",
    ),
    row(
        "store.endpoint",
        optional(
            lambda v: check.is_text(v) and authority.is_endpoint(v), authority.ENDPOINT_EXPECTED
        ),
        "S3-compatible server; empty: AWS_ENDPOINT_URL, else AWS",
    ),
    row(
        "store.region",
        Field("", check.like(r"[a-z0-9-]*"), "a region such as eu-central-1, or empty"),
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
    row(
        "formats.offered",
        list_of(check.is_prefix, "metadata prefixes"),
        "metadata formats to offer, in this order; oai_dc is always offered; empty: all",
    ),
    row(
        "documents.include",
        some_of([], "redirects", "errors"),
        "captures to publish besides successful ones: redirects (status 3xx), which replay needs "
        "to follow old links, and errors (4xx and 5xx)",
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
    row(
        "sets.names",
        table_of(oai_name.is_set, check.is_text, "from set specifications to names"),
        "setName of a set, instead of the generated one",
    ),
    row(
        "sets.descriptions",
        table_of(oai_name.is_set, check.is_prose, "from set specifications to texts"),
        "setDescription of a set",
    ),
    row(
        "sets.rules",
        check.SET_RULES,
        "your own sets, applied at ingest (docs/reference/oai-pmh.md, Rules)",
    ),
    row(
        "publish.lead",
        number(2, 1, 3600, "seconds"),
        "time from a publish to the instant when it takes effect",
    ),
    row(
        "publish.dumps",
        list_of(check.is_prefix, "jsonl and metadata prefixes, without repetition"),
        "formats that each publish writes dumps in, below `dumps/` in the store",
    ),
    row(
        "publish.tables",
        flag(True),
        "each publish describes its data files as tables of Iceberg, below `tables/`",
    ),
    row(
        "publish.site",
        flag(False),
        "each publish writes all answers of OAI-PMH as files, below `site/`, for hosts without a "
        "server",
    ),
    row(
        "publish.memory",
        number(2048, 256, 1_048_576, "megabytes"),
        "memory of the database of a publish; larger data is sorted on disk, in `TMPDIR`",
    ),
    *harvesting.HARVEST_KEYS,
    *signing.SIGN_KEYS,
    *http.SERVE_KEYS,
    *gathering.REPEC_KEYS,
    *http.CLIENT_KEYS,
    *gathering.GATHER_KEYS,
    *gathering.FILESET_KEYS,
    *CONTENT_KEYS,
    *SITE_KEYS,
    *records.RECORD_KEYS,
)
