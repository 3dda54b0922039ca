"""The log follows the store: after crashes, in races, in copies and expiries; damage is found."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from builder.outputs.follow import OutputError, expire
from builder.outputs.log import log as proofs_log
from builder.outputs.log.bundle import verify_bundle
from builder.outputs.log.index import NEWEST, RUNS, index_key
from builder.outputs.log.log import sign_snapshots
from builder.outputs.log.note import Checkpoint, SecretKey, open_checkpoint
from builder.outputs.log.prove import Prover
from builder.outputs.log.signer import open_signer
from builder.outputs.log.tiles import CHECKPOINT
from builder.outputs.log.verify import log_findings
from builder.publish.store_copy import CopyResult, export
from builder.snapshot.orphans import ORPHAN_AGE
from builder.store.folder import FolderStore
from functions.config import configuration
from functions.snapshot import instant, layout
from functions.snapshot.errors import ConfigurationError, MissingObject, StoreError
from functions.snapshot.manifest import Manifest
from tests.bucket import Bucket, fresh
from tests.builder.conftest import World
from tests.builder.outputs.dumps.history import apply, die_at, histories, identify
from tests.builder.outputs.log.conftest import Signed, sign_with
from tests.extent import examples
from tests.proxy import Proxy


def checkpoint(signed: Signed) -> Checkpoint:
    return open_checkpoint(signed.world.store.read(CHECKPOINT).decode(), [signed.key])


def publish_some(signed: Signed, count: int = 3) -> list[bytes]:
    """Publish some snapshots; return the checkpoints after each."""
    found = []
    for number in range(count):
        signed.publish(*range(number * 10, number * 10 + 10))
        signed.world.clock.sleep(60)
        found.append(signed.world.store.read(CHECKPOINT))
    return found


def test_each_publish_adds_an_entry(signed: Signed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key nothing is signed; on AWS, each time costs a request for the key."""
    opened = []

    def count(*given: Any) -> Any:
        opened.append(given)
        return open_signer(*given)

    signed.settings, key = {}, signed.settings
    for number in range(2):
        signed.publish(*range(5), title=str(number))
        assert signed.world.store.tag(CHECKPOINT) is None
        signed.world.clock.sleep(60)
    signed.settings = key
    monkeypatch.setattr("builder.outputs.log.output.open_signer", count)
    notes = publish_some(signed)
    assert len(opened) == 3
    assert [open_checkpoint(note.decode(), [signed.key]).size for note in notes] == [1, 2, 3]
    assert signed.codes() == []
    assert list(log_findings(signed.world.store, None)) == []
    signed.world.publish(**signed.settings)  # nothing is new
    assert signed.world.store.read(CHECKPOINT) == notes[-1]
    assert signed.verify(identify(1)).snapshot == 5


@pytest.mark.parametrize("left", range(7))
def test_a_crash_leaves_a_log_that_the_next_publish_completes(
    signed: Signed, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signing dies before its write number `left`; readers may prove in between."""
    publish_some(signed, 2)
    before = checkpoint(signed)
    with monkeypatch.context() as patch:
        die_at(patch, "log/", left, StoreError("killed"), "create", "replace")
        try:
            signed.publish(100)
            assert left >= 5  # tile, bundle, index, checkpoint, newest
        except OutputError:
            assert left < 5
    assert checkpoint(signed).size in (2, 3)
    assert set(signed.codes()) <= {"log-behind"}
    assert signed.verify(identify(3)).present
    signed.world.clock.sleep(60)
    signed.publish(101)
    assert signed.codes(before) == []
    assert checkpoint(signed).size == 4


def test_two_that_sign_at_once_append_one_entry(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_some(signed, 1)
    world, signed.settings, kept = signed.world, {}, signed.settings
    signed.publish(50)
    signer = open_signer(world.configuration(**kept))
    assert signer
    whole = proofs_log._build
    rivals = [lambda: sign_snapshots(world.store, signer, world.runtime())]

    def build(*given: Any) -> Any:
        """Let a rival sign the same snapshot after this process has read the log."""
        made = whole(*given)
        if rivals:
            assert rivals.pop()() == 1
        return made

    monkeypatch.setattr(proofs_log, "_build", build)
    assert sign_snapshots(world.store, signer, world.runtime()) == 0
    assert checkpoint(signed).size == 2
    assert signed.codes() == []


def test_a_truncated_or_split_log_is_found(signed: Signed, tmp_path: Path) -> None:
    world = signed.world
    notes = publish_some(signed)
    last = open_checkpoint(notes[2].decode(), [signed.key])
    (world.root / CHECKPOINT).write_bytes(notes[0])
    assert "log-truncated" in signed.codes()
    assert "log-truncated" in signed.codes(last)
    # The holder of the key begins again from an older state.
    shutil.rmtree(world.root / "log")
    signed.publish(7, title="Another")
    assert signed.codes() == []
    assert signed.codes(open_checkpoint(notes[0].decode(), [signed.key])) == ["log-split"]
    assert "log-truncated" in signed.codes(last)
    # A store that was brought back to an older state is behind its log.
    shutil.rmtree(world.root / "log")
    assert signed.codes() == ["log-missing"]
    assert list(log_findings(world.store, None)) == []


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("log/tile/entries/000.p/3", "log-altered"),
        ("log/tile/0/000.p/3", "log-altered"),
        (CHECKPOINT, "log-forged"),
        (index_key(2), "log-index"),
        ("snapshots/2/manifest.json", "log-mismatch"),
    ],
)
def test_an_altered_object_is_found(signed: Signed, key: str, code: str) -> None:
    publish_some(signed)
    path = signed.world.root / key
    data = path.read_bytes()
    if key.endswith("manifest.json"):
        data = replace(Manifest.from_json(data), views="0" * 64).to_json()  # with its own digest
    else:
        place = data.index(b"records") + 20 if b"records" in data else len(data) - 12
        data = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    path.write_bytes(data)
    assert code in signed.codes()


def test_another_key_neither_verifies_nor_continues_a_log(signed: Signed, tmp_path: Path) -> None:
    publish_some(signed, 1)
    other = sign_with(signed.world, tmp_path / "other.key")
    assert other.codes() == ["log-forged"]
    with pytest.raises(OutputError, match=r"verifier key"):
        other.publish(60)
    signed.world.clock.sleep(60)
    with (tmp_path / "other.key").open("a") as file:
        file.write(f"{signed.key.to_text()}\n")
    other.publish(61)
    found = log_findings(signed.world.store, [other.key, signed.key])
    assert list(found) == []
    assert other.codes()[0] == "log-forged"  # of entries from before


def test_an_index_that_was_changed_is_not_signed(signed: Signed) -> None:
    """Else who writes to the bucket could have other rows signed."""
    publish_some(signed, 1)
    path = signed.world.root / index_key(1)
    index = json.loads(path.read_bytes())
    index["records"][0]["files"][0][2][0][4] = index["lookup"][0]["files"][0][2][0][4]
    path.write_text(json.dumps(index))
    signed.publish(60)
    assert signed.codes() == ["log-index"]
    assert signed.verify(identify(1)).present


def test_an_index_of_sheaf_0_2_is_read(signed: Signed) -> None:
    """It has no value for the rows of a group that it does not hold itself."""
    publish_some(signed, 1)
    for key in (index_key(1), NEWEST):
        index = json.loads(signed.world.store.read(key))
        for file in (file for run in index["records"] for file in run["files"]):
            assert {group.pop() for group in file[2]} == {""}
        (signed.world.root / key).write_text(json.dumps(index, separators=(",", ":")))
    assert signed.codes() == []
    assert signed.verify(identify(1)).present
    signed.publish(60)
    assert signed.codes() == []


def test_an_expiry_keeps_the_log_and_removes_indexes(signed: Signed) -> None:
    publish_some(signed)
    world = signed.world
    world.clock.sleep(120)
    first = signed.prove(identify(1), "2026-01-01T00:00:30Z")
    young, old = (f"{RUNS}{digit * 32}.json" for digit in "01")
    for stray in (young, old):
        world.store.create(stray, b"{}")
    aged = (world.clock.now - ORPHAN_AGE).timestamp()
    os.utime(world.root / old, (aged, aged))
    expire(world.store, world.runtime())
    # A publish that signs meanwhile has not yet written the index that names its runs.
    assert (world.store.tag(young) is None, world.store.tag(old) is None) == (False, True)
    world.store.remove(young)
    assert signed.codes() == []
    assert checkpoint(signed).size == 3
    assert world.store.tag(index_key(1)) is None
    with pytest.raises(MissingObject, match="retired"):
        signed.prove(identify(1), "2026-01-01T00:00:30Z")
    assert first.entry.index == 0
    assert signed.verify(identify(1)).snapshot == 3
    signed.publish(88)
    assert signed.codes() == []


def test_a_copy_has_the_log(signed: Signed, tmp_path: Path) -> None:
    def copy_to(source: FolderStore, target: FolderStore) -> CopyResult:
        return export(source, target, signed.world.runtime())

    publish_some(signed)
    copy = FolderStore(tmp_path / "copy")
    copy_to(signed.world.store, copy)
    shutil.rmtree(tmp_path / "copy" / "log")
    assert copy_to(signed.world.store, copy).objects == 7  # 2 tiles, 3 indexes, checkpoint, newest
    assert list(log_findings(copy, [signed.key])) == []
    assert copy_to(signed.world.store, copy).objects == 0
    shutil.copytree(tmp_path / "copy", tmp_path / "older")
    signed.publish(70)
    # A store that is older than its log is found.
    shutil.copytree(tmp_path / "copy", tmp_path / "behind")
    shutil.copytree(signed.world.root / "log", tmp_path / "behind" / "log", dirs_exist_ok=True)
    found = log_findings(FolderStore(tmp_path / "behind"), [signed.key])
    assert [finding.code for finding in found] == ["log-ahead"]
    copy_to(signed.world.store, copy)
    shutil.rmtree(signed.world.root / "log")
    shutil.copytree(tmp_path / "older" / "log", signed.world.root / "log")
    for history in ("more entries", "another history", r"more entries \(4\)"):
        with pytest.raises(StoreError, match=history):
            copy_to(signed.world.store, copy)
        if history == "more entries":
            # The holder of the key begins the log again, and signs four snapshots.
            shutil.rmtree(signed.world.root / "log")
            for number in range(4):
                signed.publish(200 + number)
                signed.world.clock.sleep(60)
        else:
            shutil.rmtree(signed.world.root / "log", ignore_errors=True)


@given(histories)
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_state_of_any_history_can_be_proved(
    make_world: Callable[[str], World], tmp_path: Path, history: list[Any]
) -> None:
    """Proofs say of each item what the records of the newest snapshot say."""
    name = str(len(list(tmp_path.iterdir())))
    signed = sign_with(make_world(name), tmp_path / f"{name}.key")
    signed.publish(0)
    for operation in history:
        signed.world.clock.sleep(60)
        apply(signed.world, operation, **signed.settings)
    assert signed.codes() == []
    with signed.world.views() as connection:
        rows = connection.execute("SELECT identifier, deleted FROM records").fetchall()
    states = dict(rows)
    prover = Prover(signed.world.store)
    for number in range(12):
        verdict = verify_bundle(prover.prove(identify(number)), [signed.key])
        assert states.get(identify(number)) == (verdict.deleted if verdict.present else None)
        assert verdict.snapshot == signed.world.newest().snapshot
    prover.close()


def test_a_wrong_key_is_refused_before_anything_is_published(
    signed: Signed, tmp_path: Path
) -> None:
    secret = SecretKey.parse(Path(signed.settings["SHEAF_SIGN_KEY"]).read_text())
    (tmp_path / "wrong").write_text(f"{secret.to_text()[:-9]}AAAAAAAA=")
    for given_ in (
        {"SHEAF_SIGN_KEY": str(tmp_path / "none")},
        {"SHEAF_SIGN_KEY": str(tmp_path / "wrong")},
        {"SHEAF_SIGN_KEY": f"{secret.to_text()[:-9]}AAAAAAAA="},
    ):
        signed.settings = given_
        with pytest.raises(ConfigurationError) as caught:
            signed.publish(1)
        assert secret.to_text()[-40:] not in str(caught.value)
    assert not (signed.world.root / "current.json").exists()


class FakeAws:
    """Secrets Manager and KMS, as far as a signer asks them."""

    def __init__(self, secret: SecretKey) -> None:
        self.secret = secret

    def get_secret_value(self, SecretId: str) -> dict[str, object]:  # noqa: N803
        return {"SecretString": self.secret.to_text()}

    def get_public_key(self, KeyId: str) -> dict[str, object]:  # noqa: N803
        from cryptography.hazmat.primitives import serialization as forms
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        public = Ed25519PrivateKey.from_private_bytes(self.secret.seed).public_key()
        der = public.public_bytes(forms.Encoding.DER, forms.PublicFormat.SubjectPublicKeyInfo)
        return {"PublicKey": der, "SigningAlgorithms": ["ED25519_SHA_512", "ED25519_PH_SHA_512"]}

    def sign(self, Message: bytes, **given: str) -> dict[str, object]:  # noqa: N803
        assert (given["MessageType"], given["SigningAlgorithm"]) == ("RAW", "ED25519_SHA_512")
        return {"Signature": self.secret.sign(Message)}


@pytest.mark.parametrize(
    "kind",
    ["secretsmanager:eu-central-1:123456789012:secret:a", "kms:eu-central-1:123456789012:key/a"],
)
def test_keys_on_aws_sign_alike(signed: Signed, kind: str) -> None:
    secret = SecretKey.parse(Path(signed.settings["SHEAF_SIGN_KEY"]).read_text())
    asked = []

    def connect(service: str, region: str) -> FakeAws:
        asked.append((service, region))
        return FakeAws(secret)

    text = '[repository]\nnamespace = "archive.example.org"'
    found = open_signer(configuration.parse(text, {"SHEAF_SIGN_KEY": f"arn:aws:{kind}"}), connect)
    assert found
    assert found.key == signed.key
    assert asked == [(kind.partition(":")[0], "eu-central-1")]
    note = found.sign_note(Checkpoint(signed.key.name, 0, bytes(32)).to_text())
    assert open_checkpoint(note, [signed.key]).size == 0


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
        bundle = prover.prove(identifier)
        assert len(proxy.took("GET")) <= 3
        assert verify_bundle(bundle, [signed.key]).present == present
        sizes.append(len(bundle.to_json()))
        proxy.seen.clear()
        prover.prove(identify(8))
        assert len(proxy.took("GET")) <= 2
        prover.close()
    proxy.seen.clear()
    prover = Prover(store)
    bundle = prover.prove(identify(7), first)
    assert len(proxy.took("GET")) <= 5
    assert verify_bundle(bundle, [signed.key]).until == instant.to_text(signed.world.clock())
    prover.close()
    store.close()
    assert max(sizes) < 20_000


def upload(root: Path, bucket: Bucket) -> None:
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_relative_to(root / ".tmp"):
            bucket.create(path.relative_to(root).as_posix(), path.read_bytes())
