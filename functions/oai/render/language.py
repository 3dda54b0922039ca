"""Texts of the pages, a file of `languages/` for each language.

A file is TOML: tables of texts. A text may have fields in braces. A text that a language lacks is
taken from English. An operator's own folder may replace files and add languages.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from functions.snapshot.errors import ConfigurationError, describe_failure

_DATE = re.compile(r"([0-9]{4})(?:-(0[1-9]|1[0-2])(?:-([0-9]{2})(?:T([0-9]{2}:[0-9]{2}).*Z)?)?)?")
FALLBACK = "en"
FOLDER = "languages"


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its code (BCP 47), its name in itself, and its texts by `table.name`."""

    code: str
    name: str
    texts: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its fields filled. Raises KeyError for an unknown key."""
        return self.texts[key].format(**values) if values else self.texts[key]

    def find(self, key: str, default: str) -> str:
        """Return a text without fields, or `default`."""
        return self.texts.get(key, default)

    def write_number(self, number: int) -> str:
        """Return a number with its thousands separated."""
        return f"{number:,}".replace(",", self.texts["format.thousands"])

    def count(self, noun: str, number: int) -> str:
        """Return a number with the noun of the table `count`.

        A noun has forms divided by |: of one and of others, or of one, of two to four, and of
        others.
        """
        forms = self.texts[f"count.{noun}"].split("|")
        place = 0 if number == 1 else 1 if 2 <= number <= 4 else -1
        return f"{self.write_number(number)} {forms[place]}"

    def join(self, texts: Sequence[str]) -> str:
        """Return texts as an enumeration."""
        return self.texts["format.and"].join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))

    def write_bytes(self, size: int) -> str:
        """Return a number of bytes with a unit of 1,000 bytes each, rounded to three digits."""
        value, unit = float(size), "B"
        for larger in ("kB", "MB", "GB", "TB", "PB"):
            if value < 999.5:
                break
            value, unit = value / 1000, larger
        text = f"{value:.0f}" if unit == "B" or value >= 99.95 else f"{value:.3g}"
        return f"{text.replace('.', self.texts['format.point'])} {unit}"

    def write_date(self, text: str) -> str:
        """Return a date (W3CDTF) in words: year, month or day, and its minute in UTC if it has one.

        A text of another form is unchanged.
        """
        match = _DATE.fullmatch(text)
        if match is None:
            return text
        year, month, day, minute = match.groups()
        if not month:
            return str(year)
        name = self.texts["date.of" if day else "date.names"].split()[int(month) - 1]
        form = self.texts["date.day" if day else "date.month"]
        words = form.format(day=int(day or 0), month=name, year=year)
        return f"{words}, {minute} UTC" if minute else words


@cache
def read_languages(places: tuple[Path, ...]) -> Mapping[str, Language]:
    """Return the languages of template folders by code; earlier folders take precedence.

    Raises ConfigurationError.
    """
    languages: dict[str, dict[str, str]] = {}
    for place in reversed(places):
        for path in sorted((place / FOLDER).glob("*.toml")):
            languages.setdefault(path.stem, {}).update(_flatten(path))
    english = languages[FALLBACK]
    return {
        code: Language(code, texts.get("language.name", code), {**english, **texts})
        for code, texts in languages.items()
    }


def _flatten(path: Path) -> Mapping[str, str]:
    """Return the texts of a file. Raises ConfigurationError."""
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {describe_failure(error)}") from error
    texts: dict[str, str] = {}
    for table, rows in tables.items():
        if not isinstance(rows, dict) or not all(isinstance(text, str) for text in rows.values()):
            raise ConfigurationError(f"{path}: {table} is not a table of texts")
        texts.update({f"{table}.{name}": text for name, text in rows.items()})
    return texts
