"""The configuration keys for the pages for people."""

import re

from functions.config import check
from functions.config.key import ConfigKey

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
    ConfigKey(
        "site.imprint",
        "",
        lambda v: v == "" or check.is_notice(v),
        f"a text of up to {check.LONGEST_NOTICE} characters or an http or https URL, or empty",
        "who is responsible for the pages, shown on each of them",
    ),
    ConfigKey(
        "site.sitemap",
        ["collection", "file", "fileset", "template"],
        check.are_some_of(*KINDS),
        f"a list of {', '.join(KINDS)}",
        "kinds of records that `sitemap.xml` lists; empty: no sitemap",
    ),
    ConfigKey(
        "site.robots",
        "pages",
        lambda v: v in ROBOTS,
        " or ".join(ROBOTS),
        "what `robots.txt` allows crawlers: the pages, or nothing but harvesting",
    ),
)
