"""Checks of wrong requests: each must be answered with its error of the protocol (section 3.6)."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from builder.check.checks import FOLDER
from builder.check.conversation import Conversation


@cache
def load_requests() -> Sequence[Mapping[str, Any]]:
    """Return the wrong requests, as their table describes them."""
    rows: list[Mapping[str, Any]]
    rows = tomllib.loads((FOLDER / "requests.toml").read_text("utf-8"))["request"]
    return rows


def check_arguments(talk: Conversation, prefix: str, granularity: str) -> None:
    """Send wrong requests, and judge the errors."""
    for row in load_requests():
        if row.get("granularity", granularity) != granularity:
            continue
        check, right = row["check"], row["errors"]
        arguments = [(k, v.replace("{prefix}", prefix)) for k, v in row["arguments"]]
        reply = talk.ask(*arguments, wrong=True)
        if reply is None:
            talk.card.leave(talk.asker.reason, check)
            continue
        codes = {*reply.codes}
        if reply.page is None:
            seen = f"status {reply.exchange.status}" if reply.exchange.status else "no answer"
        else:
            seen = f"the error {', '.join(sorted(codes))}" if codes else "no error"
        sent = "&".join(f"{k}={v}" for k, v in arguments) or "no arguments"
        seen = f"{seen}, and not {' or '.join(right)}, for {sent}"
        talk.card.hold(check, codes.intersection(right), seen, request=reply.number)
