"""Packs a function of template.yaml: what it imports, for its processor, as bytecode.

    python3.13 infra/package.py OaiFunction|PublishFunction arm64|x86_64 FOLDER

The versions are those of requirements.lock, held to its hashes. Run by package.mk, and with the
Python that the function runs on, because only that one's bytecode is of use there.
"""

import compileall
import fnmatch
import py_compile
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = "sheaf.toml"
RUNTIME = "3.13"

# Amazon Linux 2023, on which that runtime is built, has glibc 2.34.
_GLIBC = range(34, 16, -1)
_PROCESSORS = {"arm64": "aarch64", "x86_64": "x86_64"}


@dataclass(frozen=True, slots=True)
class Contents:
    """What a function is packed of.

    `packages` are names in requirements.lock, all that is needed: nothing comes along by itself.
    `sources` are folders of this repository, `left_out` patterns of paths in the package. Of a
    package's own papers those in `told` are kept, for something asks for its version.
    """

    packages: tuple[str, ...]
    sources: tuple[str, ...]
    left_out: tuple[str, ...]
    told: tuple[str, ...] = ("duckdb",)


_NEVER = ("*/__pycache__", "*.pyi", "*/py.typed", "bin", "_duckdb-stubs", "adbc_driver_duckdb")
_SERVING = ("duckdb/experimental", "duckdb/query_graph")

FUNCTIONS = {
    "OaiFunction": Contents(
        ("duckdb", "jinja2", "markupsafe", "obstore"),
        ("functions", "templates"),
        (*_NEVER, *_SERVING),
    ),
    "PublishFunction": Contents(
        ("duckdb", "jinja2", "markupsafe", "obstore", "publicsuffixlist", "pyarrow"),
        ("functions", "templates", "builder"),
        (*_NEVER, *_SERVING, "builder/commands", "builder/demo"),
        ("duckdb", "publicsuffixlist"),
    ),
}


def pack(name: str, architecture: str, target: Path) -> None:
    """Fill the folder `target` with what the function runs from, and say how large it is."""
    contents = FUNCTIONS[name]
    target.mkdir(parents=True, exist_ok=True)
    _install(contents.packages, architecture, target)
    for folder in contents.sources:
        shutil.copytree(
            ROOT / folder, target / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for path in _configuration(ROOT):
        _copy(ROOT / path, target / path)
    for path in list(_superfluous(contents, target)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    _compile(target)
    size = sum(p.stat().st_size for p in target.rglob("*") if p.is_file())
    print(f"{name} for {architecture}: {size / 1e6:.1f} MB unpacked", file=sys.stderr)


def locked(text: str, packages: Iterable[str]) -> str:
    """Return what a lock says of `packages`. Raises LookupError for one that is not in it."""
    blocks: dict[str, list[str]] = {}
    block: list[str] = []
    for line in text.splitlines():
        if line[:1].isalnum():
            block = blocks.setdefault(line.partition("==")[0], [])
        block.append(line)
    missing = sorted(set(packages) - set(blocks))
    if missing:
        raise LookupError(f"requirements.lock has no {', '.join(missing)}")
    return "\n".join(line for package in packages for line in blocks[package]) + "\n"


def _install(packages: Sequence[str], architecture: str, target: Path) -> None:
    processor = _PROCESSORS[architecture]
    platforms = [f"manylinux_2_{minor}_{processor}" for minor in _GLIBC]
    platforms.append(f"manylinux2014_{processor}")
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write(locked(lock, packages))
        wanted.flush()
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
                *("--target", str(target), "--no-deps", "--only-binary=:all:", "--no-compile"),
                *("--implementation", "cp", "--python-version", RUNTIME),
                *(f"--platform={platform}" for platform in platforms),
                *("--require-hashes", "--requirement", wanted.name),
            ],
            check=True,
        )


def _configuration(root: Path) -> Iterator[Path]:
    """Yield the operator's own files in `root`: sheaf.toml, and the folder of templates it names.

    Raises ValueError where that folder lies elsewhere, for it would be missed only in the function.
    """
    path = root / CONFIGURATION
    if not path.exists():
        return
    yield Path(CONFIGURATION)
    own = tomllib.loads(path.read_text("utf-8-sig")).get("formats", {}).get("templates", "")
    if own:
        folder = (root / own).resolve()
        if not folder.is_dir() or root not in folder.parents:
            raise ValueError(f"formats.templates is {own}, expected a folder below {root}")
        yield folder.relative_to(root)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def _superfluous(contents: Contents, target: Path) -> Iterator[Path]:
    told = {f"{name}-" for name in contents.told}
    for path in target.glob("*.dist-info"):
        keeps = path.name.partition("-")[0] + "-" in told
        yield from (p for p in path.iterdir() if p.name != "METADATA") if keeps else [path]
    for path in sorted(target.rglob("*"), key=lambda p: len(p.parts)):
        inside = path.relative_to(target).as_posix()
        if path.exists() and any(fnmatch.fnmatch(inside, p) for p in contents.left_out):
            yield path


def _compile(target: Path) -> None:
    """Compile for good: the function's folder cannot be written to, and nothing in it changes."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(target, quiet=1, invalidation_mode=mode, stripdir=str(target)):
        raise ValueError(f"something in {target} is no Python {RUNTIME}")


if __name__ == "__main__":
    pack(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
