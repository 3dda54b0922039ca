"""Character encodings, by their WHATWG names (Encoding Standard; HTML, section 13.2.3).

What a page declares is believed in this order: byte order mark, HTTP header, the page's own
declaration. For HTML that declares nothing there is a conservative guess.
"""

import codecs
import re

import webencodings

_PRESCAN = 1 << 12  # bytes; the standard asks for 1024, but old pages begin with long scripts
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_META = re.compile(rb"""<meta[\s/][^>]*?charset\s*=\s*["']?\s*([^\s"'/>;]+)""", re.IGNORECASE)
_XML = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']\s*([^"'\s>]+)""")
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))

_HIGH = re.compile(rb"[\x80-\xff]")
_HIGH_PAIR = re.compile(rb"[\xc0-\xff]{2,}")
# Letters of windows-1250 that are symbols, or rare, in windows-1252, next to a letter: the Czech
# and Slovak S, T and Z with caron, the Polish L with stroke, A with ogonek and Z with dot.
_CENTRAL = re.compile(
    rb"(?:[A-Za-z][\x8a\x8d\x8e\x9a\x9d\x9e\xb3\xb9\x9f\xbf]|\x9e[a-z]|\x9a[a-z])"
)


def named(label: str | None) -> str | None:
    """Return the WHATWG name of the encoding with this label, None if there is none such."""
    if not label:
        return None
    encoding = webencodings.lookup(label)
    return encoding.name if encoding else None


def of_bom(head: bytes) -> str | None:
    """Return the encoding that a byte order mark shows."""
    return next((name for mark, name in _BOMS if head.startswith(mark)), None)


def declared_within(head: bytes) -> str | None:
    """Return the encoding that a page's meta element or XML declaration names."""
    start = head[:_PRESCAN]
    match = _META.search(_COMMENT.sub(b"", start)) or _XML.match(start)
    name = named(match[1].decode("latin-1")) if match else None
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"  # a declaration readable as ASCII is none of UTF-16
    return "windows-1252" if name == "x-user-defined" else name


def guessed(head: bytes) -> str:
    """Return what HTML that declares nothing is most likely in.

    UTF-8 if it decodes; else one of three code pages: windows-1251 where most letters beyond
    ASCII stand together in words, windows-1250 where its own letters are not rare, else
    windows-1252.
    """
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(head)
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    high = len(_HIGH.findall(head))
    paired = sum(map(len, _HIGH_PAIR.findall(head)))
    if high >= 16 and paired * 5 >= high * 4:
        return "windows-1251"
    central = len(_CENTRAL.findall(head))
    return "windows-1250" if central >= 3 and central * 20 >= high else "windows-1252"


def decoder(name: str) -> codecs.IncrementalDecoder:
    """Return a decoder for the encoding with a WHATWG name, which replaces what is wrong."""
    encoding = webencodings.lookup(name) or webencodings.UTF8
    return encoding.codec_info.incrementaldecoder("replace")
