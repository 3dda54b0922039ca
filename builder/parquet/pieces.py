"""Pieces of a template, from which records are rendered by columns instead of one by one.

Fixed texts, printed columns and choices between them are told apart. What has no such form stays
with Jinja2, which renders it once for each combination of values that it depends on. So the text is
the one that the template gives.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import nodes

from functions.oai.render.escaping import escape
from functions.oai.render.loop import CONSTANT, RecordLoop, Separate
from functions.snapshot import schema

_TEXT, _NUMBER, _FLAG = "text", "number", "flag"
_KINDS = {
    "VARCHAR": _TEXT,
    "BIGINT": _NUMBER,
    "INTEGER": _NUMBER,
    "SMALLINT": _NUMBER,
    "BOOLEAN": _FLAG,
}
_COLUMNS = {
    **{c.name: _KINDS[c.type] for c in (*schema.ITEM, *schema.CAPTURE) if c.type in _KINDS},
    "datestamp": _TEXT,
}
"""The columns of a capture with one value, which is printed like `str`."""
_FIXED_COPY = "copy"
"""The filter that gives None if no addresses of copies are configured."""


@dataclass(frozen=True, slots=True)
class FixedText:
    """The same text in each record."""

    text: str


@dataclass(frozen=True, slots=True)
class PrintedColumn:
    """The first of some columns that is not empty, else the last one, as XML text."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """A test of a column: whether it is true, is none, or holds a text (`contains`)."""

    name: str
    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Pieces for records that pass a test, and for the others; `negated` swaps them."""

    test: ColumnTest
    then: tuple["Piece", ...]
    otherwise: tuple["Piece", ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class ElementPiece:
    """An element without attributes, `<prefix:name>`, and what is within it."""

    prefix: str
    name: str
    body: tuple["Piece", ...]


@dataclass(frozen=True, slots=True)
class RenderedPiece:
    """A part that Jinja2 renders from the columns `loop.names`, with END behind each record."""

    loop: RecordLoop
    constants: Mapping[str, str]


Piece = FixedText | PrintedColumn | Choice | ElementPiece | RenderedPiece


class NoColumnsError(Exception):
    """Records that have to be rendered one by one."""


def split_template(
    tree: nodes.Template,
    separate: Separate,
    constants: Mapping[str, str],
    prefix: str,
    *,
    has_copies: bool,
) -> tuple[Piece, ...]:
    """Return the pieces of a template as Renderer.tree gives it, which changes the tree.

    Elements of the namespace prefix `prefix` become pieces of their own; "" for none. `has_copies`
    tells whether addresses of copies are configured. Raises NoColumnsError.
    """
    if tree.find(nodes.Assign) or tree.find(nodes.AssignBlock):
        raise NoColumnsError
    if not has_copies:
        _remove_copies(tree)
    return _Splitter(separate, constants, prefix).split(tree.body)


@dataclass(frozen=True, slots=True)
class _Splitter:
    separate: Separate
    constants: Mapping[str, str]
    prefix: str

    def split(self, body: Sequence[nodes.Node]) -> tuple[Piece, ...]:
        pieces = [piece for node in body for piece in self._statement(node)]
        return self._elements(self._tokens(pieces))

    def _statement(self, node: nodes.Node) -> Iterator[Piece]:
        if isinstance(node, nodes.Output):
            for child in node.nodes:
                yield self._print(child)
            return
        if isinstance(node, nodes.If) and not node.elif_:
            found = _test(node.test)
            if found is not None:
                test, negated = found
                yield Choice(test, self.split(node.body), self.split(node.else_), negated)
                return
        yield self._separate(node)

    def _print(self, node: nodes.Node) -> Piece:
        if isinstance(node, nodes.TemplateData):
            return FixedText(node.data)
        if isinstance(node, nodes.Name) and node.name in CONSTANT:
            return FixedText(escape(self.constants[node.name]))
        names = _names(node)
        if names and all(_COLUMNS.get(name) == _TEXT for name in names):
            return PrintedColumn(names)
        if len(names) == 1 and _COLUMNS.get(names[0]) == _NUMBER:
            return PrintedColumn(names)
        return self._separate(nodes.Output([node], lineno=node.lineno))

    def _separate(self, node: nodes.Node) -> RenderedPiece:
        loop = self.separate([node])
        if "datestamp" in loop.names:  # which may be raised to another
            raise NoColumnsError
        return RenderedPiece(loop, self.constants)

    def _tokens(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield the pieces with the elements' tags apart, and other neighbouring texts joined."""
        tag = re.compile(f"(</?{self.prefix}:[A-Za-z]+>)" if self.prefix else "(?!)()")
        held = ""
        for piece in pieces:
            if not isinstance(piece, FixedText):
                if held:
                    yield FixedText(held)
                yield piece
                held = ""
                continue
            first, *rest = tag.split(piece.text)
            held += first
            for token, text in zip(rest[::2], rest[1::2], strict=True):
                if held:
                    yield FixedText(held)
                yield FixedText(token)
                held = text
        if held:
            yield FixedText(held)

    def _elements(self, pieces: Iterator[Piece]) -> tuple[Piece, ...]:
        """Return the pieces with each element and what is within it as one."""
        found: list[Piece] = []
        for piece in pieces:
            text = piece.text if isinstance(piece, FixedText) else ""
            if not self.prefix or f"{self.prefix}:" not in text:
                found.append(piece)
                continue
            name = text.removeprefix(f"<{self.prefix}:").removesuffix(">")
            if text != f"<{self.prefix}:{name}>":
                if re.search(f"</?{self.prefix}:", text):  # with attributes, or closed elsewhere
                    raise NoColumnsError
                found.append(piece)  # a declaration of the namespace
                continue
            found.append(ElementPiece(self.prefix, name, self._within(pieces, name)))
        return tuple(found)

    def _within(self, pieces: Iterator[Piece], name: str) -> tuple[Piece, ...]:
        """Take the pieces up to the end of an element, which has no inner ones."""
        body: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, FixedText):
                if piece.text == f"</{self.prefix}:{name}>":
                    return tuple(body)
                if set(piece.text) & set("<&\r"):
                    raise NoColumnsError
            body.append(piece)
        raise NoColumnsError


def fixed_text(pieces: Iterable[Piece]) -> str:
    """Return all fixed texts within pieces, in order."""
    found = []
    for piece in pieces:
        match piece:
            case FixedText():
                found.append(piece.text)
            case Choice():
                found.append(fixed_text((*piece.then, *piece.otherwise)))
            case ElementPiece():
                tag = f"{piece.prefix}:{piece.name}>"
                found.append(f"<{tag}{fixed_text(piece.body)}</{tag}")
    return "".join(found)


def _names(node: nodes.Node) -> tuple[str, ...]:
    """Return the columns of `a` or `a or b`; none for another expression."""
    if isinstance(node, nodes.Name):
        return (node.name,)
    if isinstance(node, nodes.Or):
        left, right = _names(node.left), _names(node.right)
        return (*left, *right) if left and right else ()
    return ()


def _test(node: nodes.Node) -> tuple[ColumnTest, bool] | None:
    """Return a test, and whether its opposite is meant; None for other expressions."""
    if isinstance(node, nodes.Not):
        found = _test(node.node)
        return found and (found[0], not found[1])
    if isinstance(node, nodes.Name) and node.name in _COLUMNS:
        return ColumnTest(node.name, "true"), False
    if isinstance(node, nodes.Test) and node.name == "none" and isinstance(node.node, nodes.Name):
        return (ColumnTest(node.node.name, "none"), False) if node.node.name in _COLUMNS else None
    if isinstance(node, nodes.Compare) and len(node.ops) == 1:
        (operand,), left = node.ops, node.expr
        right = operand.expr
        if isinstance(left, nodes.Const) and isinstance(right, nodes.Name):
            is_text = isinstance(left.value, str) and _COLUMNS.get(right.name) == _TEXT
            if is_text and operand.op in ("in", "notin"):
                return ColumnTest(right.name, "contains", left.value), operand.op == "notin"
    return None


def _remove_copies(tree: nodes.Template) -> None:
    """Replace the addresses of copies by None, as nothing else depends on each record."""
    for node in tree.find_all(nodes.With):
        for index, value in enumerate(node.values):
            if isinstance(value, nodes.Filter) and value.name == _FIXED_COPY:
                node.values[index] = nodes.Const(None, lineno=value.lineno)
