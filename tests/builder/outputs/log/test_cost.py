"""What a proof costs: requests to a bucket, and bytes."""

from pathlib import Path

import pytest

from builder.outputs.log.bundle import verify_bundle
from builder.outputs.log.prove import Prover
from functions.snapshot import instant, layout
from tests.bucket import Bucket, fresh
from tests.builder.outputs.dumps.history import identify
from tests.builder.outputs.log.conftest import Signed
from tests.proxy import Proxy


def test_a_proof_takes_three_requests_and_an_earlier_state_five(
    signed: Signed, moto_server: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data files have many row groups, of which a proof reads one of each table."""
    monkeypatch.setattr(layout, "GROUP_ROWS", 256)
    signed.publish(*range(3000))
    first = signed.world.clock()
    signed.world.clock.sleep(60)
    signed.publish(*range(2900, 6100), title="Another")
    bucket = fresh(moto_server)
    upload(signed.world.root, bucket)
    store = bucket.through(proxy.url)
    sizes = []
    for identifier, present in (
        (identify(7), True),
        (identify(2950), True),
        (identify(9999), False),
    ):
        proxy.seen.clear()
        prover = Prover(store)
        made = prover.prove(identifier)
        assert len(proxy.took("GET")) <= 3
        assert verify_bundle(made, [signed.key]).present == present
        sizes.append(len(made.to_json()))
        proxy.seen.clear()
        prover.prove(identify(8))
        assert len(proxy.took("GET")) <= 2
        prover.close()
    proxy.seen.clear()
    prover = Prover(store)
    made = prover.prove(identify(7), first)
    assert len(proxy.took("GET")) <= 5
    assert verify_bundle(made, [signed.key]).until == instant.to_text(signed.world.clock())
    prover.close()
    store.close()
    assert max(sizes) < 20_000


def upload(root: Path, bucket: Bucket) -> None:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_relative_to(root / ".tmp"):
            bucket.create(path.relative_to(root).as_posix(), path.read_bytes())
