"""Checks of wrong requests: each must be answered with its error of the protocol (section 3.6)."""

from builder.check.checks import read_table
from builder.check.conversation import Conversation


def check_arguments(talk: Conversation, prefix: str, granularity: str) -> None:
    """Send the wrong requests of the table, and judge the errors."""
    for row in read_table("requests.toml")["request"]:
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
