"""Pace and limits: a command's own value, else the one for all commands, else its default."""

import pytest

from builder.http.settings import http_settings
from functions.config.configuration import parse
from functions.config.http import DEFAULTS


@pytest.mark.parametrize("command", DEFAULTS)
def test_each_command_has_its_defaults(command: str) -> None:
    found = http_settings(parse("", {}), command)
    for name, value in DEFAULTS[command].items():
        assert getattr(found, name) == (tuple(value) if isinstance(value, list) else value)


def test_limits_and_policy_are_those_of_the_command() -> None:
    limits = http_settings(parse("", {}), "harvest").limits()
    assert (limits.connect, limits.first_byte, limits.total) == (30, 300, 7200)
    assert (limits.rate, limits.bytes) == (100, 256_000_000)
    policy = http_settings(parse("", {}), "fileset").policy()
    assert (policy.interval, policy.concurrent, policy.rest) == (0.5, 2, 10)


TEXT = """
[http]
host_seconds = 3
ports = [80]
[http.commands.fileset]
host_seconds = 0.25
concurrent = 8
"""


def test_a_command_s_own_value_precedes_that_for_all_commands() -> None:
    configuration = parse(TEXT, {})
    gather, fileset = (http_settings(configuration, name) for name in ("gather", "fileset"))
    assert (gather.host_seconds, gather.concurrent, gather.ports) == (3, 16, (80,))
    assert (fileset.host_seconds, fileset.concurrent, fileset.ports) == (0.25, 8, (80,))
    assert http_settings(configuration, "harvest").host_seconds == 3


def test_the_environment_overrides_both() -> None:
    variables = {
        "SHEAF_HTTP_HOST_SECONDS": "2.5",
        "SHEAF_HTTP_COMMANDS": "{ gather = { tries = 3 } }",
    }
    with pytest.raises(Exception, match=r"http\.commands\.gather\.tries \(SHEAF_HTTP_COMMANDS\)"):
        parse(TEXT, variables)
    variables["SHEAF_HTTP_COMMANDS"] = "{ gather = { concurrent = 3 } }"
    configuration = parse(TEXT, variables)
    assert http_settings(configuration, "gather").concurrent == 3
    assert http_settings(configuration, "fileset").concurrent == 4
    assert http_settings(configuration, "fileset").host_seconds == 2.5
