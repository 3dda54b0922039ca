"""Packs a function of template.yaml: what it imports, for its processor, as bytecode.

    python3.13 infra/package.py FUNCTION arm64|x86_64 FOLDER

FUNCTION is one of FUNCTIONS below.

The versions are those of requirements.lock, held to its hashes. Run by package.mk, and with the
Python that the function runs on, because only that one's bytecode is of use there.
"""

import compileall
import fnmatch
import py_compile
import shlex
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


_NEVER = (
    *("*/__pycache__", "*.pyi", "*/py.typed", "bin", "_duckdb-stubs", "adbc_driver_duckdb"),
    *("templates/check", "templates/schemas/*.rng", "templates/routers", "templates/README.md"),
    # Nothing imports these by itself.
    *("jinja2/ext.py", "jinja2/nativetypes.py", "jinja2/sandbox.py"),
    *("obstore/auth", "obstore/fsspec.py"),
)
_DUCKDB = ("duckdb/experimental", "duckdb/query_graph", "duckdb/polars_io.py")
# What pyarrow speaks with others by, and what it is built by. The libraries that are left need
# each other.
_PYARROW = (
    *("pyarrow/include", "pyarrow/src", "pyarrow/tests", "pyarrow/*.p[yx][xdi]", "pyarrow/*.pxi"),
    *("pyarrow/_*test*", "pyarrow/_cuda*", "pyarrow/_csv*", "pyarrow/_json*", "pyarrow/_feather*"),
    *("pyarrow/_orc*", "pyarrow/_dataset*", "pyarrow/_acero*", "pyarrow/_substrait*"),
    *("pyarrow/_azurefs*", "pyarrow/_gcsfs*", "pyarrow/_hdfs*", "pyarrow/_s3fs*"),
    *("pyarrow/*flight*", "pyarrow/*gandiva*", "pyarrow/*encryption*", "pyarrow/libarrow_s3.so*"),
    *("pyarrow/libarrow_python.so", "pyarrow/*.so.*.*.*"),
)

FUNCTIONS = {
    "OaiFunction": Contents(
        ("apig-wsgi", "duckdb", "jinja2", "markupsafe", "msgspec", "obstore", "zstandard"),
        ("functions", "templates"),
        (
            *(*_NEVER, *_DUCKDB, "zstandard/*cffi*"),
            # Of archives, the pages know digests; of the content's room, how captures and those
            # beside them are found.
            *("functions/archive/[cgimrsz]*", "functions/content/replay/[!_r]*"),
            *(
                f"functions/content/{name}*"
                for name in ("[amoq]", "cdx", "cont", "fun", "ha", "rep[!l]", "sto")
            ),
            "functions/content/replay/re[fp]*",
            *("functions/site/server*", "functions/*/redirects*", "functions/snapshot/site_names*"),
        ),
    ),
    # The decoders are of captures' own codings; what is not in them is answered as it is stored.
    "ContentFunction": Contents(
        (
            *("apig-wsgi", "brotli", "chardetng-py", "duckdb", "jinja2", "markupsafe", "msgspec"),
            *("obstore", "webencodings", "zstandard"),
        ),
        ("functions", "templates"),
        (*_NEVER, *_DUCKDB, "zstandard/*cffi*"),
    ),
    # What writes to the bucket uses the boto3 of Lambda's runtime.
    "PublishFunction": Contents(
        (
            *("cffi", "chardetng-py", "cryptography", "duckdb", "fastavro", "jinja2"),
            *("markupsafe", "msgspec", "publicsuffixlist", "pyarrow", "pycparser", "tqdm"),
            *("webencodings", "zstandard"),
        ),
        ("functions", "templates", "builder"),
        (*_NEVER, *_DUCKDB, *_PYARROW, "zstandard/*cffi*", "builder/commands"),
        ("duckdb", "publicsuffixlist"),
    ),
    "IngestFunction": Contents(
        (
            *("brotli", "chardetng-py", "duckdb", "isal", "msgspec", "publicsuffixlist", "pyarrow"),
            *("tqdm", "webencodings", "zstandard"),
        ),
        ("functions", "templates", "builder"),
        (*_NEVER, *_DUCKDB, *_PYARROW, "zstandard/*cffi*", "builder/commands"),
        ("duckdb", "publicsuffixlist"),
    ),
    "FilesetFunction": Contents(
        (
            *("ada-url", "cffi", "chardetng-py", "msgspec", "protego", "publicsuffixlist"),
            *("pycparser", "tqdm", "webencodings"),
            "urllib3",  # Lambda's runtime may have an older one
        ),
        ("functions", "templates", "builder"),
        (*_NEVER, "builder/commands"),
        ("publicsuffixlist",),
    ),
}


OPTIONS = {
    *("ArchivesBucket", "ArchivesPrefix", "BaseUrl", "Burst", "CertificateArn"),
    *("CloudFrontLogs", "Concurrency", "ContentConcurrency", "ContentMemory", "DomainName"),
    *("ExpireDays", "ExpireKeep", "ExpireSchedule", "FilesetConcurrency", "FilesetMemory"),
    *("FilesetTries", "IngestConcurrency", "IngestMemory", "IngestOnUpload"),
    *("IngestPrefix", "IngestSeconds", "KeepDeletedDays", "LogDays", "Memory"),
    *("MonthlyBudget", "PublishMemory", "PublishSchedule", "PublishWithinDays"),
    *("RatePerClient", "RatePerSecond", "S3Endpoint", "SigningKey", "SigningSecret"),
    *("StorePrefix", "VerifyParts", "VerifySchedule"),
}
"""What template.yaml reads from its parameter Options, and had as parameters up to version 0.2."""


def pack(name: str, architecture: str, target: Path) -> None:
    """Fill the folder `target` with what the function runs from, and say how large it is."""
    _refuse_parameters_of_before(ROOT / "samconfig.toml")
    contents = FUNCTIONS[name]
    target.mkdir(parents=True, exist_ok=True)
    _install(contents.packages, architecture, target)
    for folder in contents.sources:
        shutil.copytree(
            ROOT / folder, target / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for path in _configuration(ROOT):
        _copy(ROOT / path, target / path)
    for path in sorted(
        set(_superfluous(contents, target)), reverse=True
    ):  # a folder after its files
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    _name(target)
    _compile(contents, target)
    size = sum(p.stat().st_size for p in target.rglob("*") if p.is_file())
    print(f"{name} for {architecture}: {size / 1e6:.1f} MB unpacked", flush=True)


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


def _refuse_parameters_of_before(path: Path) -> None:
    """Raise ValueError for settings of SAM that were parameters once: it would drop them unsaid."""
    environments = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    for name, environment in environments.items():
        deploy = environment.get("deploy", {}) if isinstance(environment, dict) else {}
        given = deploy.get("parameters", {}).get("parameter_overrides", [])
        rows = given if isinstance(given, list) else shlex.split(given)
        pairs = [(key, value.strip('"')) for key, _, value in (row.partition("=") for row in rows)]
        moved = [f"{key}={value}" for key, value in pairs if key in OPTIONS]
        if moved:
            line = ";".join(
                [*(value for key, value in pairs if key == "Options" and value), *moved]
            )
            raise ValueError(
                f"{path.name} sets parameters in [{name}] that are options now; instead of"
                f' {", ".join(row.partition("=")[0] for row in moved)} write "Options={line}"'
            )


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

    It goes where the function will look for it, by the same name as seen from sheaf.toml. Raises
    ValueError for a folder that has no such name, for it would be missed only in the function.
    """
    path = root / CONFIGURATION
    if not path.exists():
        return
    yield Path(CONFIGURATION)
    own = tomllib.loads(path.read_text("utf-8-sig")).get("formats", {}).get("templates", "")
    if own:
        folder = Path(own)
        named = folder.parts and not folder.is_absolute() and ".." not in folder.parts
        if not named or not (root / folder).is_dir():
            raise ValueError(
                f"formats.templates is {own}, expected a folder below {root}, as seen from there"
            )
        yield folder


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def _superfluous(contents: Contents, target: Path) -> Iterator[Path]:
    """Yield what is to go: papers of packages, and what `left_out` names."""
    told = {f"{name}-" for name in contents.told}
    for path in target.glob("*.dist-info"):
        keeps = path.name.partition("-")[0] + "-" in told
        yield from (p for p in path.iterdir() if p.name != "METADATA") if keeps else [path]
    for path in target.rglob("*"):
        inside = path.relative_to(target).as_posix()
        if any(fnmatch.fnmatch(inside, pattern) for pattern in contents.left_out):
            yield path


def _name(target: Path) -> None:
    """Write down the program's own version, which Identify tells."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    folder = target / f"{name}-{version}.dist-info"
    folder.mkdir()
    told = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (folder / "METADATA").write_text(told, "utf-8")


def _compile(contents: Contents, target: Path) -> None:
    """Compile for good: the function's folder cannot be written to, and nothing in it changes.

    Of what is not ours the bytecode is all that stays, a megabyte less; ours stays to be read in
    tracebacks. Raises ValueError for what cannot be compiled.
    """
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for found in sorted(target.iterdir()):
        ours = found.name in contents.sources
        compiled = compileall.compile_dir if found.is_dir() else compileall.compile_file
        if not compiled(
            found, quiet=1, invalidation_mode=mode, stripdir=str(target), legacy=not ours
        ):
            raise ValueError(f"{found} cannot be compiled")
        if not ours:
            for path in [*found.rglob("*.py")] if found.is_dir() else [found]:
                if path.suffix == ".py":
                    path.unlink()


if __name__ == "__main__":
    try:
        pack(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
    except ValueError as error:
        sys.exit(str(error))
