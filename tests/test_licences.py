"""Every package that is locked has a licence that Sheaf's own allows it to be used under."""

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALIKE = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What packages call licences, by SPDX's name."""
PERMISSIVE = {
    *("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CNRI-Python", "MIT", "MIT-0", "PSF-2.0"),
    *("MPL-2.0", "Public Domain"),  # of MPL only changed files must be given away
}
READ = {
    "chardetng-py": "MIT",
    "ocfl-py": "MIT",
    "pairtree": "Apache-2.0",
    "pymarc": "BSD-2-Clause",  # its metadata has the whole text
}
"""Licences of packages that name theirs in a file alone."""


def locked() -> list[str]:
    names = "requirements.lock", "requirements-dev.lock"
    lines = [line for name in names for line in (ROOT / name).read_text("utf-8").splitlines()]
    return sorted({line.partition("==")[0] for line in lines if re.match(r"\w.*==", line)})


def licences(name: str) -> set[str]:
    """Return SPDX's names of a package's licences, as its metadata has them."""
    if name in READ:
        return {READ[name]}
    found = metadata.metadata(name)
    classes = [c.rpartition(" :: ")[2] for c in found.get_all("Classifier") or [] if "Lic" in c]
    text = found["License-Expression"] or "; ".join(classes) or found["License"] or "none"
    return {ALIKE.get(one, one) for one in re.split(r" AND | OR |; ", text)}


def test_each_package_has_a_permissive_licence() -> None:
    seen = 0
    for name in locked():
        try:
            found = licences(name)
        except metadata.PackageNotFoundError:
            continue  # of another system
        seen += 1
        assert found <= PERMISSIVE, f"{name}: {found}"
    assert seen > 80
