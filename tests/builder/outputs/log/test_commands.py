"""The commands that sign, prove and verify."""

import json
import stat
from pathlib import Path

import pytest

from builder.commands.cli import main
from builder.outputs.log.tiles import CHECKPOINT
from functions.snapshot.oai_name import to_oai
from tests.builder.conftest import NAMESPACE, World, capture
from tests.builder.outputs.dumps.history import identify


@pytest.fixture
def home(world: World, tmp_path: Path) -> Path:
    """Give a configuration that names a key, and an intake."""
    path = tmp_path / "sheaf.toml"
    path.write_text(
        f'[repository]\nnamespace = "{NAMESPACE}"\n[store]\nuri = "store"\n'
        "[publish]\nlead = 1\ntables = false\n"
    )
    world.ingest([capture(number) for number in range(20)])
    return tmp_path


def sheaf(home: Path, *line: str) -> int:
    return main([*line, "--config", str(home / "sheaf.toml"), "--json"])


def test_a_store_is_signed_proved_copied_and_verified(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*line: str, status: int = 0) -> dict[str, object]:
        assert sheaf(home, *line) == status
        return dict(json.loads(capsys.readouterr().out))

    key_file = home / "sheaf.key"
    key = str(ask("prove", "--new-key", str(key_file))["verifier_key"])
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert sheaf(home, "prove", "--new-key", str(key_file)) == 2  # never overwritten
    with (home / "sheaf.toml").open("a") as file:
        file.write('[sign]\nkey = "sheaf.key"\n')
    ask("publish")
    bundle = str(home / "proof.json")
    made = ask("prove", identify(3), "--to", bundle)
    assert (made["present"], made["snapshot"]) == (True, 1)
    capsys.readouterr()
    assert ask("verify", "--key", key, "--checkpoint", bundle)["findings"] == []
    assert ask("verify")["findings"] == []
    ask("copy", str(home / "copy"))
    assert ask("verify", "--store", str(home / "copy"), "--key", key)["findings"] == []
    # Without a store, and without its configuration.
    monkeypatch.chdir(home / "copy")
    assert main(["verify", "--bundle", bundle, "--key", key]) == 0
    assert f"{identify(3)} was in snapshot 1" in capsys.readouterr().out
    assert main(["verify", "--bundle", bundle]) == 2
    assert main(["prove", identify(4), "--store", str(home / "copy"), "--to", bundle]) == 0
    assert main(["prove", identify(4), "--store", str(home), "--to", bundle]) == 2
    assert main(["prove", identify(4), "--as-of", "2001-01-01", "--store", "."]) == 2
    absent = to_oai(NAMESPACE, "a" * 24)
    assert main(["prove", absent, "--store", str(home / "copy"), "--to", bundle]) == 0
    assert "was not in snapshot 1" in capsys.readouterr().out
    for other in (
        "10.5072/zenodo.41",
        "https://doi.org/10.5072/zenodo.41",
        "doi:10.5072/zenodo.41",
        "oai:another.example.org:" + "a" * 24,
        to_oai(NAMESPACE, "10.5072/zenodo.41"),
        to_oai(NAMESPACE, "dataset,zenodo,41"),
        to_oai(NAMESPACE, "a" * 23),
    ):
        assert main(["prove", other, "--store", str(home / "copy"), "--to", bundle]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{other} is not an identifier of this store" in line
    assert main(["prove", identify(4), "--store", str(home / "copy"), "--to", bundle]) == 0
    text = Path(bundle).read_text()
    Path(bundle).write_text(text.replace(identify(4), identify(5)))
    capsys.readouterr()
    assert main(["verify", "--bundle", bundle, "--key", key, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["proved"] is False
    (home / "store" / CHECKPOINT).unlink()
    (finding,) = ask("verify", "--key", key, status=1)["findings"]  # type: ignore[misc]
    assert finding["code"] == "log-missing"
