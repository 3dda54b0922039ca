"""Recipes: how a record of a file becomes an item, by a table of `[[records]]` and its form.

What the table does not declare follows from the form (templates/crosswalks/records/forms.toml).
"""

import html
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from lxml import etree

from builder.errors import UsageError, explaining
from builder.sources.records import crosswalks
from builder.sources.records.crosswalks import Crosswalk, CrosswalkError
from builder.sources.records.paths import compile_path, compile_pattern
from builder.sources.records.record import MarcRecord, SourceRecord, hash_record
from builder.sources.records.record_forms import AS_IS, RecordForm, form_of, read_forms
from builder.sources.records.schemas import check_record, has_schema
from builder.store.documents import encode_json
from functions.config.configuration import Configuration, to_toml
from functions.oai.format import TEMPLATES, folders
from functions.snapshot import oai_name
from functions.snapshot.errors import ConfigurationError
from functions.snapshot.oai_name import MANDATORY

LACKING, INVALID = "record-lacks", "record-invalid"
METHOD = "2"
"""Way in which items are made; records that were read in another way are read again."""
NO_NAMESPACE = "urn:x-none:xml"
"""Namespace of elements that have none, and whose form has none: OAI-PMH.xsd forbids these."""
_START = re.compile(r"<[^\s/>]+(?:[^\"'<>]++|\"[^\"]*\"|'[^']*')*>")
_UNDECLARED = re.compile(r"""\sxmlns\s*=\s*(?:""|'')""")
_DUBLIN_CORE = re.compile(
    r"<(?:[\w\x80-\U0010ffff.-]+:)?(title|creator|date|subject|type|description|identifier)"
    r"(?:\s[^>]*)?>([^<]+)<"
)
_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?(?!\d)")
_LEVEL = re.compile(r"(?:\{[^{}]*\}|[^:{}])+")
_SCHEMA = re.compile(r"schemaLocation\s*=\s*[\"']([^\"']+)")
_NOT_PREFIX = re.compile(r"[^A-Za-z0-9\-_.]+")
_LIST = re.compile(r"\.(txt|csv|tsv|lst|list|ids)$", re.IGNORECASE)
"""Names of lists of identifiers: what has such a name is no path of a record."""
_NO = frozenset({"", "0", "false", "no", "n", "f"})
"""Values of a column of deletions that say no, in lower case."""
_FALLBACK = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ '
    'http://www.openarchives.org/OAI/2.0/oai_dc.xsd">'
    "<dc:identifier>{}</dc:identifier></oai_dc:dc>"
)
_OAI_DC = (
    "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
    "http://www.openarchives.org/OAI/2.0/oai_dc/",
)


class IdentifierError(Exception):
    """A record has no identifier."""


class RecordFormat(NamedTuple):
    """A format of the records of a form; without a crosswalk, it is that in which they came."""

    prefix: str
    schema: str
    namespace: str
    crosswalk: Crosswalk | None


@dataclass(slots=True)
class OwnItem:
    """An item of the intake before its row: `entries` are its records, those that came first.

    `source` is what it came as, if no entry has it. `faults` are codes and details.
    """

    identifier: str
    id: str
    deleted: bool
    sets: tuple[str, ...] = ()
    form: str = ""
    url: str | None = None
    entries: list[dict[str, Any]] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    source: Any = None
    faults: list[tuple[str, str]] = field(default_factory=list)

    def join(self, other: "OwnItem") -> bool:
        """Add the formats of another record of the item; False if it has one of them already.

        What came in a format counts more than what a crosswalk made.
        """
        came = {entry["prefix"] for entry in self.entries if "form" in entry}
        own = [entry for entry in other.entries if "form" in entry]
        if any(entry["prefix"] in came for entry in own):
            return False
        came |= {entry["prefix"] for entry in own}
        derived = {
            e["prefix"]: e for e in (*other.entries, *self.entries) if e["prefix"] not in came
        }
        whole = [entry for entry in self.entries if "form" in entry]
        self.entries = [*whole, *own, *derived.values()]
        self.sets = oai_name.most_specific_sets((*self.sets, *other.sets))
        self.deleted = self.deleted and other.deleted
        self.url, self.fields = self.url or other.url, {**other.fields, **self.fields}
        self.faults = [
            (code, detail)
            for code, detail in (*self.faults, *other.faults)
            if code != LACKING or detail.partition(":")[0] not in came
        ]
        return True

    def row(self, name: str) -> tuple[Any, ...]:
        """Return the row of item_tables.OWN, given the name of its table."""
        prefixes = [entry["prefix"] for entry in self.entries]
        if self.deleted:
            return self.identifier, True, list(self.sets), [], None, ""
        texts = self._texts()
        date = next(filter(None, map(_DATE.search, texts.get("date", ()))), None)
        document = {
            "repository": name,
            "id": self.id,
            "records": self.entries,
            "title": next(iter(texts.get("title", ())), None),
            "creators": texts.get("creator", []),
            "date": date and date[0],
            "subjects": texts.get("subject", []),
            "type": next(iter(texts.get("type", ())), None),
            "url": self.url or next(filter(_is_address, texts.get("identifier", ())), None),
            "description": next(iter(texts.get("description", ())), None),
            "form": self.form,
            "source": self.source,
        }
        text = encode_json(document)  # a ninth of the time of Python's json
        digest = hash_record("item", text).hex()
        text = b'%b,"digest":"%b"}' % (text[:-1], digest.encode())
        return self.identifier, False, list(self.sets), prefixes, text, digest

    def _texts(self) -> Mapping[str, list[str]]:
        """Return the declared fields, and others as Dublin Core has them."""
        texts: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry["prefix"] == MANDATORY:
                for name, text in _DUBLIN_CORE.findall(entry["metadata"]):
                    text = html.unescape(text) if "&" in text else text
                    texts.setdefault(name, []).append(" ".join(text.split()))
        return {**texts, **self.fields}


class Recipe:
    """How the records of a table become items. `table` is complete, `namespace` is the store's.

    `places` are the folders of templates, the operator's own first. `gone` are the identifiers of a
    list of deletions; None: there is no list. With a guess, its files are remembered: the name of
    the table is theirs.
    """

    def __init__(
        self,
        table: Mapping[str, Any],
        namespace: str,
        places: Sequence[Path],
        gone: frozenset[str] | None = None,
        *,
        is_guess: bool = False,
    ) -> None:
        """Raise ConfigurationError for an unknown crosswalk."""
        self.table, self.namespace, self._places = table, namespace, places
        self._gone = gone or frozenset()
        self.name = str(table["name"])
        self._sets = [[*map(compile_pattern, _LEVEL.findall(text))] for text in table["sets"]]
        self._url = _compile_text(table["url"])
        self._deleted = (
            compile_path(table["deleted"]) if table["deleted"] and gone is None else None
        )
        self._fields = {
            key: [*map(compile_path, paths)]
            for key, paths in table["fields"].items()
            if key not in ("identifier", "url")
        }
        self._walks: dict[str, Crosswalk] = {}
        names = sorted({*table["formats"].values()} - {AS_IS})
        digests = [self._load(walk).digest for walk in names or crosswalks.list_tables()]
        no_part = {"complete"} if is_guess and table["files"] else {"complete", "files"}
        own = {key: table[key] for key in sorted({*table} - no_part)}
        self.text = encode_json([METHOD, own, digests, sorted(self._gone), namespace]).decode()
        """What an item depends on beside its record, as JSON."""
        self.formats: dict[str, tuple[str, str]] = {}
        """Schema and namespace of each format of the items made so far."""
        self.unchecked: set[str] = set()
        """Their formats of which no schema is at hand."""
        self._forms: dict[str, RecordForm] = {}
        self._columns: dict[str, None] = {}
        self._of_form = cache(self._list_formats)
        self._paths = cache(lambda form: tuple(map(compile_path, self._identifier(form))))

    def make(self, record: SourceRecord, id_: str | None = None) -> OwnItem:
        """Return the item of a record, whose identifier may be known. Raises IdentifierError."""
        form = form_of(record)
        self._forms.setdefault(form.name, form)
        if isinstance(record.content, Mapping):
            self._columns |= dict.fromkeys(record.content)
        id_ = id_ or record.identifier or self._find(record, form)
        identifier = oai_name.record_identifier(self.namespace, self.name, id_)
        if record.identifier and oai_name.is_foreign(record.identifier, self.namespace):
            identifier = record.identifier
        item = OwnItem(identifier, id_, self._is_deleted(record, id_), form=form.name)
        item.sets = oai_name.most_specific_sets(self._list_sets(record))
        if item.deleted:
            return item
        item.url = next(filter(_is_address, self._url(record)), None)
        landing = self.table["fields"].get("url") or form.fields.get("url", ())
        for path in landing if item.url is None else ():
            item.url = item.url or next(filter(_is_address, compile_path(path)(record)), None)
        declared = {name: tuple(paths) for name, paths in self.table["fields"].items()}
        # A guess prints the fields of the form as declared ones.
        if declared.keys() - {"url"} and declared != form.fields:
            item.fields = {
                name: [value for read in paths for value in read(record)]
                for name, paths in self._fields.items()
            }
        context = {"identifier": identifier, "url": item.url or "", "repository": self.name}
        for format_ in self._of_form(form.name):
            if (entry := self._make_entry(record, format_, context, item.faults)) is not None:
                item.entries.append(entry)
        if not any("form" in entry for entry in item.entries):
            content: Any = record.content
            item.source = record.xml or {key: [*texts] for key, texts in content.items()}
        if not any(entry["prefix"] == MANDATORY for entry in item.entries):
            item.entries.append(self._note(MANDATORY, *_OAI_DC, _FALLBACK.format(html.escape(id_))))
        return item

    def declare(self) -> str:
        """Return the section of `sheaf.toml` that would say what the first record's form gave."""
        values: dict[str, Any] = {"name": self.name, "files": self.table["files"]}
        fields: Mapping[str, Sequence[str]] = {}
        if form := next(iter(self._forms.values()), None):
            values["identifier"] = self._narrow(self._identifier(form.name))
            fields = {
                key: paths for key in form.fields if (paths := self._narrow(form.fields[key]))
            }
            values["formats"] = {
                each.prefix: form.oai_dc if each.crosswalk else AS_IS
                for each in self._of_form(form.name)
            }
        lines = [f"{key} = {_write_brief(value)}" for key, value in values.items()]
        lines += ["[records.fields]"] if fields else []
        return "\n".join(
            ["[[records]]", *lines, *(f"{key} = {_write_brief(v)}" for key, v in fields.items())]
        )

    def describe(self) -> Iterator[tuple[str | None, ...]]:
        """Yield the rows of item_tables.OWN_TABLES, after records were made."""
        for prefix, (schema, namespace) in self.formats.items():
            yield self.name, self.text, prefix, schema, namespace
        if not self.formats:
            yield self.name, self.text, None, None, None

    def identifies_otherwise(self, form: str, before: Sequence[str]) -> bool:
        """Return whether a form's identifiers are at other paths than those declared before."""
        return [*(before or read_forms()[form].identifier)] != [*self._identifier(form)]

    def _narrow(self, paths: Sequence[str]) -> Sequence[str]:
        """Return paths with only those alternatives that are names of columns, if there are."""
        if not self._columns:
            return paths
        narrow = ("|".join(n for n in path.split("|") if n in self._columns) for path in paths)
        return [path for path in narrow if path]

    def gone_items(self) -> Iterator[str]:
        """Yield the identifiers of the items that the list of deletions names."""
        for id_ in sorted(self._gone):
            is_whole = oai_name.is_foreign(id_, self.namespace)
            yield id_ if is_whole else oai_name.record_identifier(self.namespace, self.name, id_)

    def _make_entry(
        self,
        record: SourceRecord,
        format_: RecordFormat,
        context: Mapping[str, str],
        faults: list[tuple[str, str]],
    ) -> dict[str, Any] | None:
        """Return the record in a format; None if it cannot be given in it, which is a fault."""
        prefix, schema, namespace, crosswalk = format_
        if crosswalk is not None:
            if crosswalk.is_unchecked:
                self.unchecked.add(prefix)
            repairs: list[str] = []
            try:
                metadata = crosswalk(record, context, repairs)
            except CrosswalkError as error:
                faults.append((LACKING, f"{prefix}: {error}"))
                return None
            faults += [("repaired-record", f"{prefix}: {text}") for text in repairs]
            return self._note(prefix, schema, namespace, metadata)
        if not record.xml:
            return None
        is_bare = False
        if not isinstance(record.content, MarcRecord):
            name = etree.QName(record.content)  # type: ignore[arg-type]
            prefix = record.prefix or prefix
            is_bare = not name.namespace
            if is_bare and (record.form == "xml" or record.prefix):
                own = NO_NAMESPACE
            else:
                own = name.namespace or namespace
            if own != namespace:
                locations = _SCHEMA.search(record.xml[:4096])
                pairs = locations[1].split() if locations else []
                schema = dict(zip(pairs[::2], pairs[1::2], strict=False)).get(own, schema or own)
                if not record.prefix:
                    end = "" if own == NO_NAMESPACE else own.rstrip("/#").rpartition("/")[2]
                    prefix = "-".join(_NOT_PREFIX.sub("-", part) for part in (prefix, end) if part)
                namespace = own
        if not has_schema(prefix, self._places):
            self.unchecked.add(prefix)
        elif (detail := check_record(record, prefix, self._places)) is not None:
            faults.append((INVALID, f"{prefix}: {detail}"))
        xml = put_in_namespace(record.xml, namespace) if is_bare else record.xml
        entry = self._note(prefix, schema, namespace, xml)
        more = {"sets": [*record.sets]} if record.sets else {}
        return {**entry, "form": record.form, **more, **({"bare": True} if is_bare else {})}

    def _note(self, prefix: str, schema: str, namespace: str, xml: str) -> dict[str, Any]:
        self.formats[prefix] = (schema, namespace)
        return {"prefix": prefix, "schema": schema, "namespace": namespace, "metadata": xml}

    def _identifier(self, form: str) -> Sequence[str]:
        return self.table["identifier"] or read_forms()[form].identifier

    def _find(self, record: SourceRecord, form: RecordForm) -> str:
        """Return the identifier that a record has in its table."""
        for read in self._paths(form.name):
            if value := next(filter(None, map(str.strip, read(record))), None):
                return value
        places = ", ".join(self._identifier(form.name))
        if not self.table["identifier"] and isinstance(record.content, Mapping):
            places = f"columns that are known, and it has {', '.join(record.content)}"
        remedy = "" if self.table["identifier"] else ": declare `identifier`"
        raise IdentifierError(f"nothing at {places}{remedy}")

    def _is_deleted(self, record: SourceRecord, id_: str) -> bool:
        if record.deleted or id_ in self._gone:
            return True
        values = self._deleted(record) if self._deleted else ()
        return any(value.strip().lower() not in _NO for value in values)

    def _list_sets(self, record: SourceRecord) -> Iterator[str]:
        for spec in record.sets:
            yield spec if oai_name.is_set(spec) else oai_name.join_set(*spec.split(":"))
        for levels in self._sets:
            for names in product(*(read(record) for read in levels)):
                yield oai_name.join_set(*names)

    def _list_formats(self, form_name: str) -> Sequence[RecordFormat]:
        """Return the formats of a form: the declared ones, else as-is and oai_dc."""
        form = read_forms()[form_name]
        declared = self.table["formats"]
        if not declared:
            as_is = {} if form_name == "columns" else {form.prefix: AS_IS}
            declared = {**as_is, MANDATORY: form.oai_dc} if form.oai_dc != AS_IS else as_is
        formats = []
        for prefix, name in declared.items():
            own = None if name == AS_IS else self._load(name)
            schema, namespace = (own or form).schema, (own or form).namespace
            formats.append(RecordFormat(prefix, schema, namespace, own))
        return sorted(formats, key=lambda each: each.crosswalk is not None)

    def _load(self, name: str) -> Crosswalk:
        if name not in self._walks:
            base = self.table["formats"].get(MANDATORY, AS_IS)
            walk = self._load(base) if base not in (AS_IS, name) else None
            self._walks[name] = crosswalks.load(name, self._places, self.table["fields"], walk)
        return self._walks[name]


def open_recipe(
    configuration: Configuration, home: Path, table: Mapping[str, Any], *, is_guess: bool = False
) -> Recipe:
    """Return the recipe of a complete table; `home` is the folder of the configuration.

    Its key `deleted` may name a file of identifiers.
    """
    place = f"[[records]] {table['name']}"
    own, path = configuration["formats.templates"], home / table["deleted"]
    gone: frozenset[str] | None = None
    if _LIST.search(table["deleted"]) and not path.is_file():
        raise UsageError(f"{place}: deleted: {table['deleted']}: no such file")
    if table["deleted"] and path.is_file():
        try:
            with explaining(f"{place}: deleted: {table['deleted']}", "read"):
                data = path.read_bytes()
            text = data.decode(
                "utf-16" if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "utf-8-sig"
            )
        except UnicodeDecodeError as error:
            raise UsageError(f"{place}: deleted: {table['deleted']} is not UTF-8") from error
        gone = frozenset(line for line in map(str.strip, text.splitlines()) if line)
    places = folders(TEMPLATES, Path(own) if own else None)
    namespace = str(configuration["repository.namespace"])
    try:
        return Recipe(table, namespace, places, gone, is_guess=is_guess)
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error}") from error


def _compile_text(text: str) -> Any:
    """Compile a path, or a pattern, which has braces or is an address; "" gives nothing."""
    if not text:
        return lambda record: ()
    return compile_pattern(text) if "{" in text or "://" in text else compile_path(text)


def _write_brief(value: Any) -> str:
    """Return a value in TOML; a list of one text is written as the text."""
    if isinstance(value, list | tuple):
        value = value[0] if len(value) == 1 else [*value]
    return to_toml(value)


def _is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def put_in_namespace(xml: str, namespace: str) -> str:
    """Return an element without a namespace, with this one as its default."""
    start = _START.match(xml)
    assert start
    tag = _UNDECLARED.sub("", start[0])
    name = re.split(r"[\s/>]", tag, maxsplit=1)[0]
    return f'{name} xmlns="{namespace}"{tag[len(name) :]}{xml[start.end() :]}'
