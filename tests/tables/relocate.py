"""Relocates Java classes into another package, as Maven's shade plugin does.

The jar of Iceberg for Spark that PyPI has lacks the copy of Jackson that it was built with. Spark
brings Jackson under its own name. A class names others in its constant pool alone, by texts that
are preceded by their length; so a relocation changes these texts.
"""

import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path

_SIZES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
"""Bytes of a constant by its tag; a text (tag 1) has its length before it."""
_TEXT, _LONG, _DOUBLE = 1, 5, 6
_HEAD = 8  # magic and version


def relocate_class(data: bytes, package: bytes, target: bytes) -> bytes:
    """Return a class file in which classes of `package` (a/b) are those of `target`."""
    (count,) = struct.unpack_from(">H", data, _HEAD)
    made, at, index = [data[: _HEAD + 2]], _HEAD + 2, 1
    while index < count:
        tag = data[at]
        if tag == _TEXT:
            (length,) = struct.unpack_from(">H", data, at + 1)
            text = data[at + 3 : at + 3 + length].replace(package, target)
            text = text.replace(package.replace(b"/", b"."), target.replace(b"/", b"."))
            made.append(struct.pack(">BH", _TEXT, len(text)) + text)
            at += 3 + length
        else:
            made.append(data[at : at + 1 + _SIZES[tag]])
            at += 1 + _SIZES[tag]
        index += 2 if tag in (_LONG, _DOUBLE) else 1
    return b"".join([*made, data[at:]])


def relocate_jars(jars: Iterable[Path], package: str, target: str, path: Path) -> None:
    """Write a jar at `path` with the classes of `package` that jars have, under `target`."""
    with zipfile.ZipFile(path, "w") as made:
        for jar in jars:
            with zipfile.ZipFile(jar) as read:
                for name in read.namelist():
                    if name.startswith(package) and name.endswith(".class"):
                        data = relocate_class(read.read(name), package.encode(), target.encode())
                        made.writestr(name.replace(package, target), data)
