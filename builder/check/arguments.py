"""Checks of wrong requests: each must be answered with its error of the protocol (section 3.6)."""

from collections.abc import Iterator

from builder.check.conversation import Conversation
from builder.check.exchange import Arguments

_LIST = ("verb", "ListIdentifiers")
_ITEM = ("verb", "GetRecord")
_UNKNOWN = "x-sheaf-unknown"


def wrong_requests(prefix: str, granularity: str) -> Iterator[tuple[str, Arguments, set[str]]]:
    """Yield wrong requests: the check, the arguments, and the errors that are right."""
    format_ = ("metadataPrefix", prefix)
    bad_verb, bad_argument = {"badVerb"}, {"badArgument"}
    yield "A01", (("verb", "Nonsense"),), bad_verb
    yield "A02", (), bad_verb
    yield "A03", (("verb", "Identify"), ("verb", "Identify")), bad_verb
    yield "A04", (("verb", "Identify"), ("page", "1")), bad_argument
    yield "A05", (_LIST,), bad_argument
    yield "A05", (_ITEM, format_), bad_argument
    yield "A06", (_LIST, format_, format_), bad_argument
    yield "A07", (_LIST, format_, ("from", "2025-02-30")), bad_argument
    yield "A07", (_LIST, format_, ("until", "2025-13-01")), bad_argument
    yield "A07", (_LIST, format_, ("from", "yesterday")), bad_argument
    yield "A08", (_LIST, format_, ("from", "2025-02-02"), ("until", "2025-01-01")), bad_argument
    first, last = ("from", "2000-02-02"), ("until", "2000-02-03T00:00:00Z")
    yield "A09", (_LIST, format_, first, last), bad_argument
    if granularity == "YYYY-MM-DD":
        yield "A09", (_LIST, format_, last), bad_argument
    token = ("resumptionToken", _UNKNOWN)
    yield "A10", (_LIST, format_, token), bad_argument | {"badResumptionToken"}
    yield "A11", (_LIST, token), {"badResumptionToken"}
    yield "A12", (_ITEM, format_, ("identifier", f"oai:{_UNKNOWN}.org:1")), {"idDoesNotExist"}
    quoted = ("identifier", 'invalid"id<&')
    yield "A12", (_ITEM, format_, quoted), bad_argument | {"idDoesNotExist"}
    yield "A13", (_LIST, ("metadataPrefix", _UNKNOWN)), {"cannotDisseminateFormat"}


def check_arguments(talk: Conversation, prefix: str, granularity: str) -> None:
    """Send wrong requests, and judge the errors."""
    for check, arguments, right in wrong_requests(prefix, granularity):
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
        talk.card.hold(
            check,
            codes & right,
            f"{seen}, and not {' or '.join(sorted(right))}, for {sent}",
            request=reply.number,
        )
