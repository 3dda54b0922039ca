"""The stored site: its binary files are what these few lines make, and its pages parse."""

import json
import struct
import zlib
from xml.etree import ElementTree

from builder.demo.site import PAGES

TREE = [
    "................",
    "......####......",
    "....########....",
    "...##########...",
    "..####.###.###..",
    "..############..",
    "..###.####.###..",
    "..############..",
    "...##########...",
    "....########....",
    ".......##.......",
    ".......##.......",
    ".......##.......",
    ".......##.......",
    "......####......",
    "................",
]


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 16, 16, 1, 0, 0, 0, 0)
    rows = b"".join(
        b"\0" + int(row.replace("#", "0").replace(".", "1"), 2).to_bytes(2, "big") for row in TREE
    )
    # Stored, not compressed: every zlib gives the same bytes.
    pixels = b"\x78\x01\x01" + struct.pack("<HH", len(rows), len(rows) ^ 0xFFFF) + rows
    pixels += struct.pack(">I", zlib.adler32(rows))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    )


def gif() -> bytes:
    pixels = [1 if cell == "#" else 0 for row in TREE for cell in row]
    # A clear code before every second pixel keeps the codes three bits wide.
    codes = [code for i in range(0, len(pixels), 2) for code in (4, *pixels[i : i + 2])] + [5]
    bits = sum(code << (3 * i) for i, code in enumerate(codes))
    data = bits.to_bytes((3 * len(codes) + 7) // 8, "little")
    palette = bytes.fromhex("ffffff 77aa44 000000 000000")
    return (
        b"GIF89a"
        + struct.pack("<HHBBB", 16, 16, 0x91, 0, 0)
        + palette
        + b","
        + struct.pack("<HHHHB", 0, 0, 16, 16, 0)
        + bytes([2, len(data)])
        + data
        + b"\0;"
    )


def pdf() -> bytes:
    text = b"BT /F1 18 Tf 30 140 Td (Knihovna Lipova: vypujcni rad) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 320 200] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (Vypujcni rad) >>",
    ]
    out = b"%PDF-1.4\n"
    table = b"0000000000 65535 f \n"
    for number, content in enumerate(objects, 1):
        table += b"%010d 00000 n \n" % len(out)
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    count = len(objects) + 1
    start = len(out)
    out += b"xref\n0 %d\n%b" % (count, table)
    return out + b"trailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        count,
        start,
    )


def test_binary_files_are_reproducible_and_small() -> None:
    for name, made in (("razitko.png", png()), ("lipa.gif", gif()), ("vypujcni-rad.pdf", pdf())):
        assert (PAGES / "www" / name).read_bytes() == made
        assert len(made) < 1000


def test_text_files_are_well_formed() -> None:
    assert json.loads((PAGES / "data/vypujcky.json").read_text("utf-8"))["knihovna"] == "Lipová"
    for name in ("data/pobocky.xml", "blog/novinky.rss", "www/logo.svg"):
        ElementTree.parse(PAGES / name)


def test_only_one_page_is_not_utf_8() -> None:
    odd = []
    for path in PAGES.rglob("*.html"):
        try:
            path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            odd.append(path.name)
    assert odd == ["historie.html"]
    page = (PAGES / "www/historie.html").read_bytes().decode("windows-1250")
    assert "<title>Historie knihovny: žlutý dům, šedesát židlí</title>" in page
