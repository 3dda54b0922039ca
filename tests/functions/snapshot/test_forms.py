"""Forms of the store's documents: what Sheaf 0.2.0 wrote is read, and written with equal bytes."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from functions.snapshot.dumps import DumpIndex, FormatDumps
from functions.snapshot.errors import DamagedStore, NewerSchema, OlderSchemaError
from functions.snapshot.fixity import CheckReport
from functions.snapshot.manifest import Leaf, Manifest
from functions.snapshot.pointer import Pointer, Witness
from functions.snapshot.seal import seal

TIME, LATER = b'"2026-01-01T00:00:00Z"', b'"2026-01-01T00:00:01Z"'
FILES = (
    rb'[{"key":"records/x.parquet","bytes":5000,"footer":300,'
    rb'"groups":[[["\u00fc",1],["b",9],100,4,4000,200,7],[null,null,1,2,3,4,5]]}]'
)
NAMED = b'"records":2,"deleted":1,"bytes":90,"name":"a/3.jsonl","sha256":"0"'
EMPTY = b'"since":3,"snapshot":4,"records":0,"deleted":0,"bytes":0'
FORMS: dict[Any, bytes] = {
    Pointer: b'{\n "schema": 3,\n "sheaf": "0.2.0",\n "snapshots": [\n  {\n   "snapshot": 4,\n'
    b'   "effective": %b\n  }\n ],\n "settled": false,\n "store": "a",\n "expiries": 2,\n'
    b' "retired": [\n  [\n   1,\n   3\n  ]\n ],\n "expiry": {\n  "snapshots": [\n   5\n  ],\n'
    b'  "until": %b,\n  "holder": "\\u00e9"\n },\n "copied": %b,\n "sha256": '
    b'"4de8988164b9f5b12e509f71f0be2175029c489155cf7e4f7739d61ccd3fb796"\n}' % (TIME, LATER, TIME),
    Witness: b'{\n "schema": 3,\n "store": "a",\n "snapshot": 7,\n "effective": %b,\n "sha256": '
    b'"f7ebb1618362048320d410809ce6c573bf7611dec23898ef7385c2026d6ef127"\n}' % TIME,
    Leaf: b'{"schema":3,"files":%b}' % FILES,
    Manifest: seal(
        b'{"schema":3,"snapshot":3,"effective":%b,"namespace":"a.cz","sets":0,"tombstones":0,'
        b'"emptied":0,"revisits":0,"unresolved":0,"run":0,"prefix":"","views":"","publisher":"",'
        b'"libraries":{},"skipped":[],"store":"","former":[[1,""]],"identified":true,'
        b'"formats":{"a":["1",null,0],"b":["2",%b,3]},"settings":{"k":"\\u00e9"},"sequences":'
        b'[[1,%b,1,9,{"capture":9}],[2,%b,10,12,{"capture":1,"file":1},{"capture":10,"file":12}]],'
        b'"tables":{"copies":[{"key":"l","first":["a",1],"last":["b",9],"rows":100,"files":1,'
        b'"bytes":5000,"span":[1,12]}]},"leaves":{"l":%b}}' % (TIME, TIME, TIME, LATER, FILES)
    ),
    DumpIndex: seal(
        b'{"schema":1,"store":"a","repository":"\xc3\x89","snapshot":4,"datestamp":%b,"formats":'
        b'{"a":{"complete":{"snapshot":3,%b},"newest":{%b},"list":"a/4.json"},'
        b'"b":{"complete":{%b},"list":"b"}},"removed":["x"]}' % (TIME, NAMED, EMPTY, EMPTY)
    ),
    FormatDumps: b'{"schema":1,"complete":{"snapshot":3,%b,"datestamp":%b,"positions":[1,2]},'
    b'"differences":[{%b,"datestamp":%b,"positions":[1,0]}]}' % (NAMED, TIME, EMPTY, TIME),
    CheckReport: seal(
        b'{"began": %b, "ended": %b, "snapshot": 3, "part": "1/2", "percent": null, "objects": 5, '
        b'"read": 4, "read_bytes": 3, "damage": 1, "codes": {"x": 1}, "version": "v"}'
        % (TIME, LATER)
    )
    + b"\n",
}


@pytest.mark.parametrize("kind", FORMS, ids=lambda kind: kind.__name__)
def test_documents_keep_their_bytes(kind: Any) -> None:
    assert kind.from_json(FORMS[kind]).to_json() == FORMS[kind]


@pytest.mark.parametrize("kind", [Pointer, Witness, Manifest, DumpIndex])
def test_no_flipped_bit_is_read_as_another_document(kind: Any) -> None:
    data = FORMS[kind]
    for place in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << (place % 8)
        with suppress(DamagedStore, NewerSchema, OlderSchemaError):
            assert kind.from_json(bytes(flipped)) == kind.from_json(data)


@pytest.mark.parametrize("kind", [Pointer, Witness, Leaf, Manifest])
def test_another_schema_is_refused(kind: Any) -> None:
    with pytest.raises(NewerSchema, match="later Sheaf"):
        kind.from_json(b'{"schema": 99}')
    with pytest.raises(OlderSchemaError, match=r"schema 1 of a Sheaf before 0\.2\.0"):
        kind.from_json(b'{"schema": 1}')


def test_a_wrong_value_is_named_by_its_place() -> None:
    with pytest.raises(DamagedStore, match=r"a leaf .*`\$\.files\[0\]\.groups\[1\]\[2\]`"):
        Leaf.from_json(FORMS[Leaf].replace(b"null,1,2", b'null,"1",2'))


def test_two_threads_may_read_the_first_document_of_a_kind() -> None:
    """The second one comes while the kind is being prepared; without care, the process dies."""
    program = """
import threading
from functions.snapshot import seal
entered = threading.Event()
def prepare():
    entered.set()
    threading.Event().wait(0.3)
    return int
class Inner(seal.Struct):
    number: "prepare()"
class Outer(seal.Struct):
    inner: Inner
first = threading.Thread(target=seal.build, args=(Outer, {"inner": {"number": 1}}))
first.start()
entered.wait()
print(seal.build(Outer, {"inner": {"number": 2}}).inner.number)
first.join()
"""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
