"""Programs: a template that is rendered for many records at once, as one piece of text a record.

Jinja2 by itself writes each text and each value of a record as a piece of its own, sixty of them,
and escapes value by value. A program says the same in fewer steps:

- texts, values and conditions that follow each other are one formatted text;
- columns that are printed as they are come escaped, all of a page at once;
- what a loop or a block of a column or two prints (sets, languages, a type) is made once for
  equal values.

It looks at values that the template might have passed over, in a deleted record say. So it may fail
where the template would not, and in other words: whoever runs it has the template to fall back on.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.visitor import NodeTransformer

from functions.oai.render import text

_END = "\x1f"  # no text of the store holds it, for XML forbids it
_ESCAPED, _PIECE = "_escaped_", "_piece_"
_MOST = 2
"""Columns of which a block is made once for equal values; of more, hardly any are equal."""

_BEYOND: tuple[type[nodes.Node], ...] = (
    nodes.EvalContextModifier,  # {% autoescape %}: what is escaped is not known beforehand
    nodes.ScopedEvalContextModifier,
    nodes.AssignBlock,  # what these print goes to a place of its own, and is escaped there
    nodes.Block,
    nodes.CallBlock,
    nodes.FilterBlock,
    nodes.Macro,
    nodes.NSRef,
)
"""What a program is not made of."""


class Unsuited(Exception):
    """A template, or values, of which a program would not make what the template does."""


class Program:
    """A template's source, whose variables are columns or constants, as a loop over rows."""

    def __init__(
        self, environment: jinja2.Environment, source: str, names: Sequence[str], file: str
    ):
        """`names` are the columns. Raises Unsuited."""
        environment = environment.overlay()
        environment.code_generator_class = _Generator
        tree = environment.parse(source)
        recursive = any(loop.recursive for loop in tree.find_all(nodes.For))
        if recursive or any(tree.find(node) is not None for node in _BEYOND):
            raise Unsuited(file)
        stored = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
        rewriter = _Rewriter(frozenset(names) - stored)
        rewriter.visit(tree)
        self._pieces = {
            name: (of, _loop(environment, [block, _end()], of, file))
            for name, (of, block) in rewriter.pieces.items()
        }
        loaded = {node.name for node in tree.find_all(nodes.Name) if node.ctx == "load"}
        self._escaped = sorted(name for name in loaded if name.startswith(_ESCAPED))
        self._names = (*sorted(loaded & {*names}), *self._escaped, *self._pieces)
        self._template = _loop(environment, tree.body, ("_position", *self._names), file)

    @classmethod
    def of(
        cls, environment: jinja2.Environment, source: str, names: Sequence[str], file: str
    ) -> "Program | None":
        """Return the program of a source, None where it is not suited for one."""
        try:
            return cls(environment, source, names, file)
        except Unsuited:
            return None

    def render(
        self, columns: Mapping[str, Sequence[Any]], count: int, constants: Mapping[str, str]
    ) -> list[str]:
        """Return the texts of `count` records. Raises Unsuited, or what a template may raise."""
        found = dict(columns)
        for name in self._escaped:
            found[name] = text.escaped(columns[name.removeprefix(_ESCAPED)])
        for name, (of, template) in self._pieces.items():
            found[name] = _made(template, [columns[one] for one in of], constants)
        rows = zip(range(count), *(found[name] for name in self._names), strict=True)
        template = self._template
        return [*template.root_render_func(template.new_context({**constants, "_rows": rows}))]


def _made(
    template: jinja2.Template, columns: Sequence[Sequence[Any]], constants: Mapping[str, str]
) -> list[str]:
    """Return what a block makes of each row of a column or two."""
    keys = [*zip(*columns, strict=True)]
    try:
        different = [*dict.fromkeys(keys)]
    except TypeError:  # lists have no hash
        different = keys
    texts = template.render(constants, _rows=different).split(_END)
    if len(texts) != len(different) + 1:
        raise Unsuited(template.filename)
    if len(different) == len(keys):
        return texts[:-1]
    made = dict(zip(different, texts, strict=False))
    return [made[key] for key in keys]


def _loop(
    environment: jinja2.Environment, body: list[Any], names: Sequence[str], file: str
) -> jinja2.Template:
    """Return the template that makes `body` of each of `_rows`, which are values of `names`."""
    target = nodes.Tuple([nodes.Name(name, "store") for name in names], "store")
    loop = nodes.For(target, nodes.Name("_rows", "load"), body, [], None, False)
    tree = nodes.Template([loop])
    for node in (tree, *tree.find_all(nodes.Node)):
        node.lineno = node.lineno or 1
    tree.set_environment(environment)
    code = environment.compile(tree, file, file)
    template = jinja2.Template.from_code(environment, code, environment.globals)
    template.root_render_func.__globals__["escape"] = text.escape
    return template


def _end() -> nodes.Node:
    return nodes.Output([nodes.TemplateData(_END)])


class _Rewriter(NodeTransformer):
    """Puts names of what is made beforehand in the place of what would make it, row by row."""

    def __init__(self, columns: frozenset[str]):
        self.pieces: dict[str, tuple[tuple[str, ...], nodes.Node]] = {}
        self._columns = columns

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - the class of the node
        return self._block(node)

    def visit_With(self, node: nodes.With) -> nodes.Node:  # noqa: N802
        return self._block(node)

    def visit_Output(self, node: nodes.Output) -> nodes.Node:  # noqa: N802
        node.nodes = [self._value(child) for child in node.nodes]
        return node

    def _block(self, node: nodes.Node) -> nodes.Node:
        names = [*node.find_all(nodes.Name)]
        free = {n.name for n in names if n.ctx == "load"}
        free -= {n.name for n in names if n.ctx != "load"}
        if not (free <= self._columns and 1 <= len(free) <= _MOST):
            return self.generic_visit(node)
        name = f"{_PIECE}{len(self.pieces)}"
        self.pieces[name] = tuple(sorted(free)), node
        return nodes.Output([nodes.Name(name, "load")])

    def _value(self, node: nodes.Expr) -> nodes.Expr:
        """Return a printed value with columns in it as they are when they are escaped."""
        if isinstance(node, nodes.Name) and node.name in self._columns:
            return nodes.Name(f"{_ESCAPED}{node.name}", "load")
        if isinstance(node, nodes.Or):
            left, right = self._value(node.left), self._value(node.right)
            if _is_made(left) and _is_made(right):
                return nodes.CondExpr(node.left, left, right)
        return node


def _is_made(node: nodes.Node) -> bool:
    """Tell whether a value is a text already, and escaped."""
    if isinstance(node, nodes.CondExpr):
        return node.expr2 is not None and _is_made(node.expr1) and _is_made(node.expr2)
    return isinstance(node, nodes.Name) and node.name.startswith((_ESCAPED, _PIECE))


class _Generator(CodeGenerator):
    """Writes neighbouring texts, values and conditions as one formatted text."""

    def blockvisit(self, nodes: Any, frame: Frame) -> None:
        if frame.buffer is not None or frame.require_output_check:
            super().blockvisit(nodes, frame)
            return
        self.writeline("pass")
        run: list[nodes.Node] = []
        for node in nodes:
            if _is_plain(node):
                run.append(node)
                continue
            self._put(run, frame)
            run = []
            self.visit(node, frame)
        self._put(run, frame)

    def _put(self, run: Sequence[nodes.Node], frame: Frame) -> None:
        if run:
            self.writeline("yield ", run[0])
            self._format(run, frame)

    def _format(self, run: Sequence[nodes.Node], frame: Frame) -> None:
        """Write an expression: the text of plain nodes. Python makes an f-string of `%s` alone."""
        parts: list[nodes.Node] = []
        for node in run:
            parts += node.nodes if isinstance(node, nodes.Output) else [node]
        texts = [part.data if isinstance(part, nodes.TemplateData) else None for part in parts]
        if None not in texts:
            self.write(repr("".join(text or "" for text in texts)))
            return
        texts = ["%s" if text is None else text.replace("%", "%%") for text in texts]
        self.write(f"({''.join(map(str, texts))!r} % (")
        for part in parts:
            if not isinstance(part, nodes.TemplateData):
                self._part(part, frame)
                self.write(", ")
        self.write("))")

    def _part(self, part: nodes.Node, frame: Frame) -> None:
        if isinstance(part, nodes.If):
            soft = frame.soft()
            for branch in (part, *part.elif_):
                self.write("(")
                self._format(branch.body, soft)
                self.write(" if ")
                self.visit(branch.test, soft)
                self.write(" else ")
            self._format(part.else_, soft)
            self.write(")" * (1 + len(part.elif_)))
        elif _is_made(part):
            self.visit(part, frame)
        else:
            self.write("escape(")
            self.visit(part, frame)
            self.write(")")


def _is_plain(node: nodes.Node) -> bool:
    """Tell whether a node sets nothing and prints texts, values and conditions alone."""
    if isinstance(node, nodes.If):
        return all(map(_is_plain, (*node.body, *node.else_, *node.elif_)))
    return isinstance(node, nodes.Output)
