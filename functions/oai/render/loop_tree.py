"""Rewrites of a template's tree, so that a loop over records makes fewer calls.

Most templates of ReDIF lack most attributes, and a call costs ten times as much as a look whether
an attribute is there. A loop that prints its values between the same texts is one call.
"""

from jinja2 import nodes

from functions.oai.render import escaping
from functions.reading import redif_fields

ESCAPED = "_escaped_"
"""Prefix of a column whose values are escaped."""
ATTRIBUTE = "_attribute_"
"""Prefix of a column whose values are escaped for an XML attribute."""


def print_texts(
    fields: redif_fields.Fields | None, path: tuple[str, ...], before: str, after: str
) -> str:
    """Return the escaped `texts` of a path, each between two texts of XML."""
    if fields and len(path) == 1:
        values = fields.get(path[0])
        if values and len(values) == 1 and (value := values[0]).__class__ is str and value:
            if escaping.has_markup(value):
                value = escaping.escape(value)
            return before + value + after
    return escaping.print_each(redif_fields.texts(fields, *path), before, after)


FILTERS = {
    "attribute": escaping.attribute_text,
    "_escape": escaping.escape,
    "_print_each": escaping.print_each,
    "_print_texts": print_texts,
}
"""The filters that the rewritten trees use."""


def rewrite(tree: nodes.Template, columns: set[str]) -> list[str]:
    """Rewrite a tree that is_plain; return the names of the escaped columns that it needs.

    `columns` are the variables that the template reads without setting them.
    """
    names = _escape(tree, columns)
    _skip_absent(tree)
    _join_loops(tree)
    return sorted(names)


def _escape(tree: nodes.Template, columns: set[str]) -> set[str]:
    """Replace printed columns by their escaped names, filter other values; return the names."""
    names = set()
    for output in tree.find_all(nodes.Output):
        for index, node in enumerate(output.nodes):
            is_attribute = isinstance(node, nodes.Filter) and node.name == "attribute"
            prefix = ATTRIBUTE if is_attribute else ESCAPED
            column = node.node if isinstance(node, nodes.Filter) and is_attribute else node
            if isinstance(column, nodes.Name) and column.name in columns:
                name = prefix + column.name
                names.add(name)
                output.nodes[index] = nodes.Name(name, "load", lineno=node.lineno)
            elif prefix == ESCAPED and not isinstance(node, nodes.TemplateData):
                output.nodes[index] = _filter(node, "_escape")
    return names


def _filter(node: nodes.Expr, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [*arguments], [], None, None, lineno=node.lineno)


def _skip_absent(tree: nodes.Template) -> None:
    """Put a look for the attribute before each call of a filter that needs it."""
    for node in [*tree.find_all(nodes.Filter)]:
        names = _find_names(node)
        if not names or not isinstance(node.node, nodes.Name):
            continue
        call = nodes.Filter(*(getattr(node, field) for field in node.fields), lineno=node.lineno)
        there: nodes.Expr | None = None
        for name in names:
            look = nodes.Compare(name, [nodes.Operand("in", node.node)])
            there = look if there is None else nodes.Or(there, look)
        assert there is not None
        test = nodes.And(node.node, there)
        empty = nodes.Const(None) if node.name in redif_fields.SINGLE else nodes.List([])
        _become(node, nodes.CondExpr(test, call, empty))


def _find_names(node: nodes.Filter) -> list[nodes.Expr]:
    """Return the attributes of which a filter needs one; empty if that is unknown."""
    if node.kwargs or node.dyn_args or node.dyn_kwargs:
        return []
    if node.name in redif_fields.NEEDED:
        return [] if node.args else [nodes.Const(name) for name in redif_fields.NEEDED[node.name]]
    if node.name in redif_fields.OF_ARGUMENTS:
        return node.args if node.name in redif_fields.SINGLE else node.args[:1]
    return []


def _become(node: nodes.Node, other: nodes.Node) -> None:
    """Turn a node into another one, wherever the tree has it."""
    other.set_lineno(node.lineno)
    if node.environment is not None:
        other.set_environment(node.environment)
    node.__class__ = other.__class__
    node.__dict__ = other.__dict__


def _join_loops(tree: nodes.Template) -> None:
    """Replace loops that only print each value, between two texts, by one call each."""
    for loop in [*tree.find_all(nodes.For)]:
        texts = _find_texts(loop)
        if texts is not None:
            calls = [_print(part, *map(nodes.Const, texts)) for part in _parts(loop.iter)]
            call = calls[0]
            if len(calls) == 1 and isinstance(call, nodes.CondExpr):
                _become(loop, nodes.If(call.test, [nodes.Output([call.expr1])], [], []))
            else:
                _become(loop, nodes.Output(calls))


def _parts(node: nodes.Node) -> list[nodes.Expr]:
    """Return the lists that a list is the sum of."""
    if isinstance(node, nodes.Add):
        return [*_parts(node.left), *_parts(node.right)]
    assert isinstance(node, nodes.Expr)
    return [node]


def _print(node: nodes.Expr, *texts: nodes.Expr) -> nodes.Expr:
    """Return the call that prints the values of a list, each between two texts."""
    if isinstance(node, nodes.CondExpr):
        assert node.expr2 is not None
        return nodes.CondExpr(node.test, _print(node.expr1, *texts), nodes.Const(""))
    if isinstance(node, nodes.Filter) and node.name == "texts" and node.node is not None:
        return _filter(node.node, "_print_texts", nodes.Tuple(node.args, "load"), *texts)
    return _filter(node, "_print_each", *texts)


def _find_texts(loop: nodes.For) -> tuple[str, str] | None:
    """Return the texts around the values of a loop; None if it prints something else."""
    if loop.test or loop.else_ or len(loop.body) != 1 or not isinstance(loop.target, nodes.Name):
        return None
    body = loop.body[0]
    if not isinstance(body, nodes.Output):
        return None
    texts = ["", ""]
    printed = 0
    for node in body.nodes:
        if isinstance(node, nodes.TemplateData):
            texts[printed] += node.data
        elif (
            not printed
            and isinstance(node, nodes.Filter)
            and node.name == "_escape"
            and isinstance(node.node, nodes.Name)
            and node.node.name == loop.target.name
        ):
            printed = 1
        else:
            return None
    return (texts[0], texts[1]) if printed else None
