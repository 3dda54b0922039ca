"""Where the keys come from, in the order in which AWS's own tools look."""

from pathlib import Path

import pytest

from functions.snapshot.errors import StoreError
from functions.store import profile
from functions.store.profile import Profile

CREDENTIALS = """
[default]
aws_access_key_id = D
aws_secret_access_key = d/secret
[work]
aws_access_key_id = W
aws_secret_access_key = w/secret
aws_session_token = w/token
"""
CONFIG = """
[default]
region = eu-west-1
[profile work]
region = eu-central-1
[profile single-sign-on]
sso_session = x
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


def test_the_default_profile_and_a_named_one(home: dict[str, str]) -> None:
    assert profile.load(home) == Profile("D", "d/secret", "", "eu-west-1")
    named = profile.load({**home, "AWS_PROFILE": "work"})
    assert named == Profile("W", "w/secret", "w/token", "eu-central-1")


def test_keys_of_the_environment_come_first(home: dict[str, str]) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "e", "AWS_PROFILE": "work"}
    assert profile.load({**home, **keys}) == Profile("E", "e", "", "eu-central-1")
    assert profile.load({**keys, "HOME": "/nowhere"}) == Profile("E", "e")


def test_keys_that_are_fetched_come_before_the_default_profile(home: dict[str, str]) -> None:
    found = profile.load({**home, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"})
    assert found == Profile(region="eu-west-1")


def test_files_may_lie_elsewhere(home: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("[default]\naws_access_key_id = O\naws_secret_access_key = o\n")
    found = profile.load({**home, "AWS_SHARED_CREDENTIALS_FILE": str(path)})
    assert found == Profile("O", "o", "", "eu-west-1")


def test_without_any_there_are_none(tmp_path: Path) -> None:
    assert profile.load({"HOME": str(tmp_path)}) == Profile()


@pytest.mark.parametrize(
    ("name", "said"),
    [("nobody", "no such profile"), ("single-sign-on", "no keys of its own: run eval")],
)
def test_a_profile_that_cannot_be_used_is_told(home: dict[str, str], name: str, said: str) -> None:
    with pytest.raises(StoreError, match=said):
        profile.load({**home, "AWS_PROFILE": name})


def test_damaged_files_are_told_without_what_they_hold(home: dict[str, str]) -> None:
    path = Path(home["HOME"]) / ".aws" / "credentials"
    path.write_text("aws_secret_access_key = hidden\n")
    with pytest.raises(StoreError, match="cannot be read as profiles") as caught:
        profile.load(home)
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_secret_is_shown(home: dict[str, str]) -> None:
    assert "secret" not in repr(profile.load(home))


def test_a_user_whom_the_machine_does_not_know_has_no_profile() -> None:
    assert profile.load({"HOME": "~no-such-user"}) == Profile()
