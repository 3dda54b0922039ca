"""Tables of the documentation that the code has: `python -m tests.doc_tables` writes them anew.

A table stands between `<!-- NAME -->` and `<!-- end -->`.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from builder.filesets.status import STATUSES
from builder.filesets.strategies.choice import STRATEGIES

DOCS = Path(__file__).parents[1] / "docs"


def strategies() -> Iterator[str]:
    """Yield the lines of the table of strategies; those that store the same share one."""
    yield "| Strategy | Stored |"
    yield "|---|---|"
    for stored in dict.fromkeys(STRATEGIES.values()):
        names = ", ".join(f"`{name}`" for name, one in STRATEGIES.items() if one == stored)
        yield f"| {names} | {stored} |"


def statuses() -> Iterator[str]:
    """Yield the lines of the table of statuses."""
    yield "| Status | Family | Of | Meaning |"
    yield "|---|---|---|---|"
    for one in STATUSES.values():
        meaning = one.meaning + ("; may pass" if one.retryable else "")
        yield f"| `{one.name}` | {one.family} | {one.scope} | {meaning} |"


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {"strategies": strategies, "statuses": statuses}


def render(document: str) -> str:
    """Return a document with its tables as the code has them."""
    for name, lines in TABLES.items():
        before, begin, rest = document.partition(f"<!-- {name} -->\n")
        if begin:
            _, end, after = rest.partition("<!-- end -->")
            document = "".join([before, begin, *(f"{line}\n" for line in lines()), end, after])
    return document


def main() -> None:
    for path in DOCS.rglob("*.md"):
        path.write_text(render(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
