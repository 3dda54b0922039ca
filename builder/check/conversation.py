"""Conversation of a visit with its repository: each answer is judged as it comes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.check.asker import Asker
from builder.check.checks import CheckCard
from builder.check.exchange import Exchange, Question
from builder.check.protocol import judge_envelope, judge_http
from builder.check.reply import OaiReply, read_reply
from builder.runtime import Clock
from functions.snapshot.instant import to_text


@dataclass(slots=True)
class Conversation:
    """Asks, judges each reply by itself, and remembers all exchanges without their bodies.

    `base_url` is what answers must name, as Identify says, and `begun` when the visit began.
    """

    asker: Asker
    card: CheckCard
    clock: Clock
    base_url: str = ""
    begun: str = ""
    exchanges: list[Exchange] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    """The responseDate of each exchange, "" without one."""

    def __post_init__(self) -> None:
        self.begun = to_text(self.clock())

    def ask(
        self,
        *arguments: tuple[str, str],
        method: str = "GET",
        coding: str = "gzip",
        cookies: bool = True,
        wrong: bool = False,
    ) -> OaiReply | None:
        """Return the reply to a request, or None if it cannot be asked.

        An answer to a `wrong` request without an error of the protocol is left to the caller.
        """
        exchange = self.asker.ask(Question(arguments, method, coding, cookies, wrong))
        return None if exchange is None else self._judge(exchange, wrong)

    def ask_verb(self, verb: str, **arguments: str) -> OaiReply | None:
        """Return the reply to a verb; `from_` stands for `from`."""
        return self.ask(("verb", verb), *((k.rstrip("_"), v) for k, v in arguments.items()))

    def is_old(self, *stamps: str) -> bool:
        """Return whether records of these datestamps may not have changed during the visit."""
        return all(stamp < self.begun[: len(stamp)] for stamp in stamps)

    def others(self) -> Iterator[OaiReply]:
        """Yield the replies that were saved, and not asked for."""
        for exchange in self.asker.others():
            yield self._judge(exchange, wrong=False)

    def _judge(self, exchange: Exchange, wrong: bool) -> OaiReply:
        reply = read_reply(len(self.exchanges), exchange)
        self.exchanges.append(replace(exchange, body=b""))
        self.dates.append((reply.page.date if reply.page else "") or "")
        now = self.clock()
        if not self.base_url and reply.page is not None and reply.page.rows:
            self.base_url = reply.page.rows[0].get("baseURL", "")
        if wrong and not reply.codes:
            return reply
        if judge_http(self.card, reply, now):
            judge_envelope(self.card, reply, self.base_url, now)
        return reply
