"""Crosswalks: from a record of any form to one element of a metadata format.

Ours are tables in templates/crosswalks/records/ (templates/README.md). An operator's own, in the
folder `formats.templates`, is such a table or XSLT 1.0 that runs without network and files.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from lxml import etree

from builder.sources.records.forms.marcxml import UNFIT
from builder.sources.records.paths import (
    NAMESPACES,
    NOTHING,
    Context,
    PathError,
    compile_nodes,
    compile_path,
    compile_union,
    compile_values,
    open_record,
)
from builder.sources.records.record import SourceRecord
from builder.sources.records.record_forms import AS_IS, FOLDER, form_of, list_texts, read_table
from functions.config.records import FIELDS
from functions.oai.format import TEMPLATES, find_file
from functions.snapshot.errors import ConfigurationError, SheafError, describe_failure

_KEYS = frozenset(
    "name path value each content attributes map match trim first empty otherwise required".split()  # noqa: SIM905
)
"""Keys of a row."""
_BRACES = re.compile(r"\{([^{}]+)\}")

Row = Mapping[str, Any]
Emit = Callable[[Any, Context, list[str], list[str]], None]
"""Adds the parts of an element of a node, and what is required and lacks."""


class CrosswalkError(SheafError):
    """A record cannot be given in a format; the text says what it lacks."""


@dataclass(frozen=True, slots=True)
class Crosswalk:
    """A crosswalk to the format `prefix`. `digest` changes with the file that it is made of.

    What ours make is valid by the tests; what an operator's makes is unchecked.
    """

    prefix: str
    schema: str
    namespace: str
    digest: str
    apply: Callable[[SourceRecord, Context], str] = field(repr=False)
    is_unchecked: bool = False

    def __call__(
        self, record: SourceRecord, context: Context = NOTHING, faults: list[str] | None = None
    ) -> str:
        """Return the record as an element, without a declaration.

        Characters that XML forbids are removed, which is added to `faults`. Raises CrosswalkError,
        and PathError for a declared path that is none of the record's language.
        """
        document = self.apply(record, context)
        if document.isprintable():  # a tenth of the time of the search
            return document
        if faults is not None and (characters := {*UNFIT.findall(document)}):
            names = ", ".join(sorted(f"U+{ord(c):04X}" for c in characters))
            faults.append(f"characters that XML forbids were removed: {names}")
        return UNFIT.sub("", document)


def load(
    name: str,
    places: Sequence[Path] = (TEMPLATES,),
    fields: Mapping[str, str | Sequence[str]] = NOTHING,
    base: Crosswalk | None = None,
) -> Crosswalk:
    """Return the crosswalk of that name, or of that `.xsl`, from the first place that has it.

    `fields` are declared paths, which replace those of the record's form, and add to the context.
    `base` makes oai_dc for tables that read it. Raises ConfigurationError, with the file.
    """
    file = name if name.endswith((".xsl", ".toml")) else f"{name}.toml"
    searched = [find_file(places, folder, file) for folder in (FOLDER, "crosswalks", "")]
    path = next(filter(None, searched), None)
    if path is None:
        raise ConfigurationError(f"{name}: no such crosswalk; known: {', '.join(list_tables())}")
    declared = {key: list_texts(value) for key, value in fields.items()}
    seed = f"{sorted(declared.items())}{base.digest if base else ''}".encode()
    digest = blake2b(path.read_bytes() + seed, digest_size=16).hexdigest()
    if file.endswith(".xsl"):
        return _load_stylesheet(path, digest)
    document = read_table(path)
    try:
        table = _Table(path, document, declared, base)
        prefix, schema, namespace = (document[key] for key in ("prefix", "schema", "namespace"))
    except (PathError, re.error) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    except KeyError as error:
        raise ConfigurationError(f"{path} lacks {error}") from error
    return Crosswalk(prefix, schema, namespace, digest, table.apply)


_load_default = cache(load)


def list_tables() -> list[str]:
    """Return the names of our crosswalks."""
    return [path.stem for path in sorted((TEMPLATES / FOLDER).glob("*-*.toml"))]


def escape(text: str) -> str:
    """Return a text with the characters of markup escaped, for elements and attributes."""
    if "&" in text or "<" in text or ">" in text or '"' in text:
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return text.replace('"', "&quot;")
    return text


def trim_punctuation(text: str) -> str:
    """Return a text without the punctuation that ISBD puts behind it.

    A full stop stays behind initials and short words, which may be abbreviations.
    """
    text = text.strip(" /:;,=")
    if text[-1:] == "." and (text[-4:-1].isalpha() or text[-2:-1] in "])0123456789"):
        return text[:-1].rstrip()
    return text


class _Table:
    """A table of rows, compiled for the languages of paths that it reads."""

    def __init__(
        self, path: Path, document: Row, fields: Mapping[str, Any], base: Crosswalk | None
    ) -> None:
        self._name, self._fields, self._base = path.name, fields, base
        self._maps = {name: _compile_map(rows) for name, rows in document.get("maps", {}).items()}
        rows = document.get("row", ())
        self._defaults = [
            (name, compile_path(paths[0]))
            for name, paths in fields.items()
            if f"':{name}'" in f"{rows}"
        ]
        self._steps = {
            language: [
                (row, self._compile(row, "xml" if language == "dc" else language)) for row in rows
            ]
            for language in document["reads"]
        }
        self._marks = [(*step, _list_tags(step[0])) for step in self._steps.get("marc", ())]
        spaces = {**document["namespaces"], "xsi": NAMESPACES["xsi"]}
        declared = "".join(f' xmlns{":" * bool(p)}{p}="{uri}"' for p, uri in spaces.items())
        location = escape(f"{document['namespace']} {document['schema']}")
        self._opening = f'<{document["root"]}{declared} xsi:schemaLocation="{location}">'
        self._closing = f"</{document['root'].split()[0]}>"
        self._select = lru_cache(5_000)(self._select_rows)

    def apply(self, record: SourceRecord, context: Context) -> str:
        for name, read in self._defaults:
            context = {name: next(iter(read(record)), ""), **context}
        language, content = open_record(record)
        key: Any = frozenset(content) if language == "marc" else language
        if language not in self._steps:
            if "dc" not in self._steps:
                raise CrosswalkError(f"{self._name} reads {', '.join(self._steps)}, not {language}")
            form, key = form_of(record), "dc"
            if self._base or language != "xml" or form.oai_dc != AS_IS:
                content = _parse((self._base or _load_default(form.oai_dc))(record, context))
            language = "dc"
        elif not self._steps[language]:
            key = form_of(record)
        parts, lacks = [self._opening], list[str]()
        self._select(language, key)(content, context, parts, lacks)
        if lacks or len(parts) == 1:
            raise CrosswalkError(f"lacks {', '.join(lacks) or f'all that {self._name} reads'}")
        return "".join(parts) + self._closing

    def _select_rows(self, language: str, key: Any) -> Emit:
        """Return the rows that a record needs. `key`: its tags of MARC, or its form.

        Few rows have to do with the tags of a record, and few sets of tags are usual.
        """
        steps = self._steps[language]
        if not steps:
            rows = _list_rows({**key.fields, **self._fields})
            steps = [(row, self._compile(row, language)) for row in rows]
        elif language == "marc":
            steps = _choose_rows(self._marks, key)
        return _join(steps)

    def _compile(self, row: Row, language: str) -> Emit:
        """Compile a row: elements of values, an element around other rows, or a constant."""
        if wrong := {*row} - _KEYS:
            raise PathError(f"{wrong.pop()} is no key of a row")
        names = row["name"].split("/")
        opening, fill = "><".join(("", *names))[1:], _compile_attributes(row, language)
        closing = "".join(f"</{name.split()[0]}>" for name in reversed(names))
        if "content" in row:
            inside = [(child, self._compile(child, language)) for child in row["content"]]
            return _compile_parent(row, language, inside, (opening, fill, closing))
        if "value" in row:
            constant = f"{opening}{fill({}, NOTHING, '')}>{escape(row['value'])}{closing}"
            return lambda node, context, out, lacks: out.append(constant)
        read = compile_union(language, list_texts(row["path"]))
        pattern = re.compile(row["match"]) if "match" in row else None
        mapping = self._maps[row["map"]] if "map" in row else None
        clean = trim_punctuation if row.get("trim") else str.strip
        is_first, is_empty = row.get("first", False), row.get("empty", False)
        has_fixed = "{" not in "".join(row.get("attributes", {}).values())
        fixed = opening + fill({}, NOTHING, "") if has_fixed else ""
        end = closing.removeprefix(f"</{names[-1].split()[0]}>")

        # One function without inner ones, since it is called for each element.
        def emit_values(node: Any, context: Context, out: list[str], lacks: list[str]) -> None:
            parts = []
            for value in read(node, context):
                text, extra = clean(value), ""
                if pattern is not None:
                    match = pattern.search(text)
                    text = (match[1] if pattern.groups else text) if match else ""
                if mapping is not None and text:
                    mapped, extra = mapping.get(text.lower()) or mapping.get("*") or (None, "")
                    text = text if mapped == "" else mapped or ""
                if text:
                    start = (fixed or opening + fill(node, context, text)) + extra
                    part = f"{start}/>{end}" if is_empty else f"{start}>{escape(text)}{closing}"
                    parts.append(part)
            if len(parts) > 1:
                out += parts[:1] if is_first else dict.fromkeys(parts)
            else:
                out += parts

        return emit_values


def _list_rows(fields: Mapping[str, tuple[str, ...]]) -> list[Row]:
    """Return the rows of declared fields: elements of Dublin Core; a URL is an identifier."""
    urls = (":url", *fields.get("identifier", ()), *fields.get("url", ()))
    paths = {**fields, "identifier": urls}
    return [{"name": f"dc:{name}", "path": paths[name]} for name in FIELDS[:-1] if name in paths]


def _choose_rows(
    steps: Sequence[tuple[Row, Emit, Set[str]]], marks: Iterable[str]
) -> list[tuple[Row, Emit]]:
    """Return the rows that may give something of a record or field, by its tags or codes."""
    present, chosen = {"", *marks}, []
    for at, (row, emit, own) in enumerate(steps):
        # What is `otherwise` depends on the row before it.
        is_needed = at + 1 < len(steps) and steps[at + 1][0].get("otherwise")
        if is_needed or not present.isdisjoint(own):
            chosen.append((row, emit))
    return chosen


def _list_tags(row: Row) -> set[str]:
    """Return the tags without which a row of MARC gives nothing; "" if it may do without any."""
    if "value" in row or "required" in row:
        return {""}
    if "content" in row and "each" not in row:
        return set().union(*map(_list_tags, row["content"]))
    return {re.split(r"[\[$/:(']", path)[0] for path in list_texts(row.get("each") or row["path"])}


def _list_codes(row: Row) -> set[str]:
    """Return the codes without which a row within a field of MARC gives nothing, likewise."""
    if "value" in row or "required" in row:
        return {""}
    if "content" in row:
        return set().union(*map(_list_codes, row["content"]))
    matches = [re.match(r"\$([0-9A-Za-z]+)", path) for path in list_texts(row["path"])]
    return {code for match in matches for code in (match[1] if match else ("",))}


def _compile_map(rows: Mapping[str, Any]) -> Mapping[str, tuple[str, str]]:
    """Return a map's text ("" is the value itself) and attributes, by lower-case value."""
    compiled: dict[str, tuple[str, str]] = {}
    for key, entry in rows.items():
        texts = {"text": entry} if isinstance(entry, str) else dict(entry)
        text = texts.pop("text", "")
        attributes = "".join(f' {name}="{escape(value)}"' for name, value in texts.items())
        compiled |= dict.fromkeys(key.lower().split("|"), (text, attributes))
    return compiled


def _join(steps: Sequence[tuple[Row, Emit]]) -> Emit:
    """Return what emits all rows, in order, and sees to `otherwise` and `required`."""
    rows = [(emit, row.get("otherwise", False), row.get("required")) for row, emit in steps]
    emits = [emit for emit, *conditions in rows if not any(conditions)]

    def emit_each(node: Any, context: Context, out: list[str], lacks: list[str]) -> None:
        for emit in emits:
            emit(node, context, out, lacks)

    if len(emits) == len(rows):
        return emit_each

    def emit_all(node: Any, context: Context, out: list[str], lacks: list[str]) -> None:
        mark = 0
        for emit, otherwise, required in rows:
            if not otherwise:
                mark = len(out)
            elif len(out) > mark:
                continue
            emit(node, context, out, lacks)
            if required and len(out) == mark:
                lacks.append(required)

    return emit_all


def _compile_parent(
    row: Row, language: str, inside: Sequence[tuple[Row, Emit]], frame: tuple[str, Any, str]
) -> Emit:
    """Compile an element with rows inside: one for each node of `each`, or one."""
    emit_inside, (opening, fill, closing) = _join(inside), frame
    marks = [(*step, _list_codes(step[0])) for step in inside] if language == "marc" else []
    choose = lru_cache(1_000)(lambda codes: _join(_choose_rows(marks, codes)))
    has_codes = "each" in row and len(marks) > 2
    selects = [compile_nodes(language, path) for path in list_texts(row.get("each", ()))]
    constants = sum("value" in child for child, _ in inside)
    has_fixed = "{" not in "".join(row.get("attributes", {}).values())
    start = f"{opening}{fill({}, NOTHING, '')}>" if has_fixed else ""

    def emit_parent(node: Any, context: Context, out: list[str], lacks: list[str]) -> None:
        for each in [n for select in selects for n in select(node)] if selects else (node,):
            mark = len(out)
            out.append(start or f"{opening}{fill(each, context, '')}>")
            emit = choose("".join([code for code, _ in each[3]])) if has_codes else emit_inside
            emit(each, context, out, lacks)
            if len(out) > mark + 1 + constants:
                out.append(closing)
            else:
                del out[mark:]

    return emit_parent


def _compile_attributes(row: Row, language: str) -> Callable[[Any, Context, str], str]:
    """Return what gives the attributes of a node. One whose path has no value is left out."""
    constant, patterns = "", []
    for name, text in row.get("attributes", {}).items():
        before, path, after = (*_BRACES.split(text), "", "")[:3]
        if not path:
            constant += f' {name}="{escape(text)}"'
        else:
            read = None if path == "." else compile_values(language, path)
            patterns.append((f' {name}="{escape(before)}', read, escape(after) + '"'))

    def fill(node: Any, context: Context, text: str) -> str:
        result = constant
        for before, read, after in patterns:
            values = read(node, context) if read else [text]
            if value := values[0].strip() if values else "":
                result += f"{before}{escape(value)}{after}"
        return result

    return fill


def _load_stylesheet(path: Path, digest: str) -> Crosswalk:
    """Return the crosswalk of a stylesheet; its xsi:schemaLocation names the format's schema."""
    try:
        tree = _parse(path.read_bytes(), str(path))
        access = etree.XSLTAccessControl.DENY_ALL  # type: ignore[attr-defined]
        transform = etree.XSLT(tree, access_control=access)
    except (etree.LxmlError, OSError) as error:
        raise ConfigurationError(f"{path}: {describe_failure(error)}") from error
    locations = [
        e.get(f"{{{NAMESPACES['xsi']}}}schemaLocation", "").split() for e in tree.iter("{*}*")
    ]
    pair = next((words for words in locations if len(words) > 1), None)
    if pair is None:
        raise ConfigurationError(f"{path}: its element has no xsi:schemaLocation")

    def apply(record: SourceRecord, context: Context) -> str:
        texts: dict[str, Any] = {
            name: etree.XSLT.strparam(value) for name, value in context.items()
        }
        try:
            result = transform(_parse(_write_source(record)), **texts).getroot()
        except etree.LxmlError as error:
            raise CrosswalkError(f"{path.name}: {error}") from error
        if result is None:
            raise CrosswalkError(f"{path.name} made no element")
        return etree.tostring(result, encoding="unicode", with_tail=False)

    return Crosswalk(path.stem, pair[1], pair[0], digest, apply, True)


def _parse(text: str | bytes, base: str = "") -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    return etree.fromstring(text, parser, base_url=base)


def _write_source(record: SourceRecord) -> str:
    """Return the XML that a stylesheet is given: of columns, a `row` with each as a `column`."""
    if not isinstance(record.content, Mapping):
        return record.xml
    pairs = [(escape(n), escape(v)) for n, values in record.content.items() for v in values]
    columns = "".join(f'<column name="{name}">{value}</column>' for name, value in pairs)
    return UNFIT.sub("", f"<row>{columns}</row>")
