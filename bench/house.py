"""Figures of the code itself: its rooms, its names and the sizes of its parts. `make house`."""

import ast
import re
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
TOPS = ("functions", "builder")
ROOMS = (
    # Each room imports only rooms that stand below it. A module that stands alone is named itself.
    "builder.__main__",
    "builder.commands",
    "builder.aws",
    "builder.serve",
    "builder.exports",
    "builder.verify",
    "builder.publish",
    "builder.outputs",
    "builder.kinds",
    "builder.check",
    "builder.sources",
    "builder.snapshot",
    "builder.obi",
    "builder.intake",
    "builder.http",
    "builder.store",
    "builder",
    "functions.site",
    "functions.content",
    "functions.search",
    "functions.oai",
    "functions.http",
    "functions.reading",
    "functions.archive",
    "functions.store",
    "functions.config",
    "functions.kinds",
    "functions.snapshot",
)
FAMILIES = (
    "builder.exports",
    "builder.kinds",
    "builder.outputs",
    "builder.sources",
    "functions.kinds",
)
"""Packages whose folders are members of a family."""
MEMBER_IMPORTS = {
    # Importer: the members that it imports, beside commands, aws and the registries.
    "builder.check": {
        "builder.sources.harvest",
    },
    # Restore and exports are made of them: a row would only hide whose bytes they write.
    "builder.exports": {
        "builder.exports.restore",
        "builder.kinds.datasets",
        "builder.outputs.dumps",
        "builder.sources.datasets",
        "builder.sources.webarchives",
        "functions.kinds.datasets",
    },
    "builder.exports.jsonl": {
        "builder.outputs.dumps",
    },
    "builder.exports.oai": {
        "builder.outputs.dumps",
    },
    "builder.exports.site": {
        "builder.outputs.site",
    },
    "builder.exports.restore": {
        "builder.sources.datasets",
    },
    "builder.exports.warc": {
        "builder.sources.datasets",
    },
    "builder.kinds.datasets": {
        "builder.sources.datasets",
    },
    "builder.kinds.templates": {
        "builder.sources.fulltexts",
    },
    "builder.sources.records": {
        "builder.sources.harvest",
    },
    "builder.snapshot": {
        "functions.kinds.templates",
    },
    "functions.site": {
        "functions.kinds.collections",
    },
}
_IRREGULAR = frozenset(
    """
    been begun bent bought bound broken brought built caught chosen dealt done drawn driven eaten
    fallen felt flown forgotten found fought frozen given gone grown had heard held hidden hung kept
    known laid lain led left lent lit lost made meant met overtaken paid proven risen rung said seen
    sent sewn shaken shot shown sold sought spent spoken stolen stood struck stuck sung sunk sworn
    swept taken taught thought thrown told torn undone understood withdrawn woken won worn wound
    woven written
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
_VERBS = frozenset(
    {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
)
_PLACEHOLDERS = frozenset(
    "found one some known told given held said kept asked made going means".split()  # noqa: SIM905
)
"""Names of variables that do not say what they hold."""
_STORED_KEYS = {
    # module and name: keys of stored documents and of reports, which stay as they are
    "builder.check.checks means",
    "builder.sources.datasets.item given",
    "builder.sources.harvest.ingest known",
    "builder.sources.harvest.run going",
    "builder.sources.harvest.state asked",
    "builder.sources.harvest.state going",
    "builder.obi.content held",
    "builder.obi.history asked",
    "builder.sources.redif.account held",
    "builder.exports.restore.datasets kept",
    "builder.exports.restore.manifest kept",
    "builder.snapshot.expiry kept",
    "builder.verify.verify kept",
    "functions.reading.repository found",
}
SMALL = 10
"""Lines from which on a private function that is used once need not be read where it is used."""
FUNCTION = 60
"""The most lines of a function."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def modules() -> dict[str, Path]:
    """Return the product's modules by their dotted names, packages by the name of the package."""
    found = {}
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Return the full names that a file imports, anywhere in it."""
    return tuple(_imports(ast.walk(tree(path)), path))


def _imports(nodes: Iterable[ast.AST], path: Path) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(name: str) -> str | None:
    """Return the longest room of ROOMS that `name` lies in; None for other packages."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (room := ".".join(parts[:length])) in ROOMS:
            return room
    return None


def targets(name: str) -> set[str]:
    """Return the modules, not packages, that a module imports from functions and builder."""
    known = modules()
    return {
        other
        for other in imports(known[name])
        if other in known and known[other].name != "__init__.py" and other != name
    }


def arrows() -> Counter[tuple[str, str]]:
    """Return how many imports lead from one room to another."""
    counts: Counter[tuple[str, str]] = Counter()
    for name in modules():
        own = room_of(name)
        for other in targets(name):
            room = room_of(other)
            if own and room and room != own:
                counts[own, room] += 1
    return counts


def member_of(name: str) -> str | None:
    """Return the member of a family that a module belongs to; None if it is of none."""
    for family in FAMILIES:
        folder = name.removeprefix(f"{family}.").partition(".")[0]
        if name.startswith(f"{family}.") and (ROOT / family.replace(".", "/") / folder).is_dir():
            return f"{family}.{folder}"
    return None


def member_imports() -> dict[str, set[str]]:
    """Return by importer, a member or a room, the members of families that it imports.

    Commands and what runs on AWS name members, and so does a registry its own.
    """
    members: dict[str, set[str]] = defaultdict(set)
    for name in modules():
        own = member_of(name) or room_of(name) or ""
        names = {other for other in imports(modules()[name]) if other in modules()}
        answers = f"functions.kinds.{own.rpartition('.')[2]}"  # of the same kind
        for other in filter(None, map(member_of, names)):
            free = (other, "builder.aws", "builder.commands")
            if own not in free and other != answers and name not in FAMILIES:
                members[own].add(other)
    return dict(members)


def functions() -> Iterator[tuple[str, Function]]:
    """Yield each function and method with its module's name; properties are left out."""
    for name, path in modules().items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                decorators = {ast.unparse(one) for one in node.decorator_list}
                if not any("property" in one or one.endswith(".setter") for one in decorators):
                    yield name, node


def is_participle(name: str) -> bool:
    """Tell whether a function's whole name is one participle: `made`, `_opened`, `told`."""
    word = name.strip("_")
    if "_" in word or word in _VERBS:
        return False
    return word in _IRREGULAR or (word.endswith("ed") and len(word) > 4)


def participles() -> list[str]:
    """Return the functions that are named by a bare participle."""
    return sorted(f"{name}.{node.name}" for name, node in functions() if is_participle(node.name))


def placeholders() -> list[str]:
    """Return the variables, parameters, attributes and aliases with names that say nothing."""
    return [
        f"{module} {name}"
        for module, path in modules().items()
        for node in ast.walk(tree(path))
        for name in _bound_names(node)
        if name.strip("_") in _PLACEHOLDERS and f"{module} {name}" not in _STORED_KEYS
    ]


def _bound_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Attribute(attr=name, ctx=ast.Store()) | ast.alias(asname=str(name)):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name


def used_once() -> list[str]:
    """Return the private functions below SMALL lines that their module refers to once."""
    names = []
    for module, path in modules().items():
        uses: Counter[str] = Counter()
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                uses[node.id] += 1
            elif isinstance(node, ast.Attribute):
                uses[node.attr] += 1
        names += [
            f"{module}:{node.lineno} {node.name}"
            for node in ast.walk(tree(path))
            if isinstance(node, Function)
            and re.match("_[^_]", node.name)
            and not node.decorator_list
            and uses[node.name] == 1
            and (node.end_lineno or 0) - node.lineno + 1 < SMALL
        ]
    return names


def duplicate_classes() -> dict[str, list[str]]:
    """Return the names of classes that occur more than once, each with its modules."""
    places = defaultdict(list)
    for name, path in modules().items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def class_count() -> int:
    """Return how many different names classes have."""
    return len(
        {
            node.name
            for path in modules().values()
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ClassDef)
        }
    )


def longest_chain() -> list[str]:
    """Return the longest chain of modules that import one another when they are loaded."""
    known = modules()

    @cache
    def chain(name: str) -> list[str]:
        names = _imports(tree(known[name]).body, known[name])
        loaded = {n for n in names if n in known and known[n].name != "__init__.py" and n != name}
        chains = [chain(other) for other in sorted(loaded)]
        return [name, *max(chains, key=len, default=[])]

    return max([chain(name) for name in known], key=len)


def folders() -> dict[str, int]:
    """Return how many Python files each folder has, `__init__.py` included."""
    return Counter(path.parent.relative_to(ROOT).as_posix() for path in modules().values())


def weight() -> dict[str, int]:
    """Return the lines of the product (Python and SQL) and of the tests (Python)."""
    product = [
        path for top in TOPS for path in (ROOT / top).rglob("*") if path.suffix in (".py", ".sql")
    ]
    return {
        name: sum(len(path.read_bytes().splitlines()) for path in paths)
        for name, paths in (("product", product), ("tests", (ROOT / "tests").rglob("*.py")))
    }


def weight_limits() -> dict[str, int]:
    """Return the most lines that `weight` may count, as pyproject.toml has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return dict(settings["tool"]["sheaf"]["weight"])


def overweight() -> list[str]:
    """Return a line for each limit that is exceeded."""
    limits = weight_limits()
    return [
        f"{name}: {lines:,} lines, at most {limits[name]:,} (pyproject.toml, tool.sheaf.weight)"
        for name, lines in weight().items()
        if lines > limits[name]
    ]


def long_functions() -> list[str]:
    """Return the functions of more than FUNCTION lines, docstrings included."""
    return [
        f"{name}.{node.name}: {lines} lines"
        for name, node in functions()
        if (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION
    ]


def _docstring_lines(path: Path) -> int:
    total = 0
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                total += first.value.end_lineno - first.value.lineno + 1  # type: ignore[operator]
    return total


def _comment_lines(path: Path) -> int:
    with path.open("rb") as source:
        return sum(t.type == tokenize.COMMENT for t in tokenize.tokenize(source.readline))


def _spread(sizes: Iterable[int]) -> str:
    ordered = sorted(sizes)
    return f"{median(ordered):.0f} / {ordered[len(ordered) * 95 // 100]} / {ordered[-1]}"


def figures() -> list[tuple[str, str]]:
    """Return the figures as rows of a table: what is counted, and the count."""
    paths = list(modules().values())
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in paths}
    lines = sum(sizes.values())
    named = list(functions())
    bare = participles()
    between = arrows()
    levels = {len(name.split(".")) for name in modules()}
    limits = weight_limits()
    per_folder = folders()
    folder_sizes = f"{median(per_folder.values()):.0f} / {max(per_folder.values())}"
    function_sizes = [(node.end_lineno or 0) - node.lineno + 1 for _, node in named]
    return [
        ("files", f"{len(paths):,}"),
        ("lines", f"{lines:,}"),
        *(
            (f"weight: {name}", f"{count:,} of {limits[name]:,}")
            for name, count in weight().items()
        ),
        ("loose in builder/", str(per_folder["builder"])),
        ("files a folder, median / max", folder_sizes),
        ("lines a module, median / p95 / max", _spread(sizes.values())),
        ("lines a function, median / p95 / max", _spread(function_sizes)),
        ("docstrings, % of lines", f"{sum(map(_docstring_lines, paths)) * 100 / lines:.1f}"),
        ("comments, % of lines", f"{sum(map(_comment_lines, paths)) * 100 / lines:.1f}"),
        (
            "functions that are bare participles",
            f"{len(bare)} of {len(named)}, {len(bare) * 100 / len(named):.1f} %",
        ),
        ("placeholder names", str(len(placeholders()))),
        (f"private functions below {SMALL} lines, used once", str(len(used_once()))),
        ("class names used twice", f"{len(duplicate_classes())} of {class_count()}"),
        ("longest chain of imports", str(len(longest_chain()))),
        ("rooms, arrows between them", f"{len(ROOMS)}, {len(between)}"),
        ("levels of packages", str(max(levels))),
        ("files below 40 lines", str(sum(size < 40 for size in sizes.values()))),
    ]


def main() -> None:
    """Print the figures, and with an argument what lies behind one of them."""
    details: dict[str, Callable[[], list[str]]] = {
        "participles": participles,
        "placeholders": placeholders,
        "once": used_once,
        "classes": lambda: [f"{n}: {', '.join(p)}" for n, p in duplicate_classes().items()],
        "chain": longest_chain,
        "folders": lambda: [f"{count:4} {name}" for name, count in sorted(folders().items())],
        "arrows": lambda: [f"{a} -> {b}: {count}" for (a, b), count in sorted(arrows().items())],
    }
    if len(sys.argv) > 1:
        print("\n".join(details[sys.argv[1]]()))
        return
    rows = figures()
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")
    sys.exit("\n".join(overweight()) or None)


if __name__ == "__main__":
    main()
