"""The configuration keys for the pages for people."""

import re

from functions.config import check
from functions.config.key import ConfigKey, choice, optional, row, some_of

ROBOTS = ("pages", "none")
KINDS = ("capture", "collection", "file", "fileset", "harvested", "template")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


SITE_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "site.language",
        "en",
        lambda v: isinstance(v, str) and _LANGUAGE.fullmatch(v) is not None,
        "the name of a file of languages/, such as en or cs",
        "language of the pages, unless a reader chooses another",
    ),
    ConfigKey(
        "site.colours",
        {},
        check.expect_table(
            ("light", "dark").__contains__,
            lambda v: isinstance(v, str) and _COLOUR.fullmatch(v) is not None,
        ),
        'a table with light and dark, colours such as "#0b57d0"',
        "colour of links and charts, for light and for dark screens",
    ),
    row(
        "site.imprint",
        optional(check.is_notice, check.NOTICE),
        "who is responsible for the pages, shown on each of them",
    ),
    row(
        "site.sitemap",
        some_of(["collection", "file", "fileset", "template"], *KINDS),
        "kinds of records that `sitemap.xml` lists; empty: no sitemap",
    ),
    row(
        "site.robots",
        choice(*ROBOTS),
        "what `robots.txt` allows crawlers: the pages, or nothing but harvesting",
    ),
)
