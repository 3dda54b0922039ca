"""A visit of a repository of the tests, and what it found."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import Any

from builder.check.asker import AskBudget, RepositoryAsker
from builder.check.checks import CheckCard
from builder.check.records import check_records
from builder.check.visit import Visit, VisitOptions, visit
from builder.http.addresses import AnyAddresses
from builder.http.client import HttpClient
from builder.http.limits import Limits
from builder.http.politeness import HostPolicy, HostQueue
from tests.builder.sources.harvest.provider import NOW

LIMITS = Limits(connect=5, first_byte=2, total=20, rate=100, bytes=64_000_000)


def visiting(
    url: str,
    clock: Callable[[], datetime] = lambda: NOW,
    limits: Limits = LIMITS,
    seconds: float = 60.0,
    requests: int = 600,
    **options: Any,
) -> tuple[CheckCard, Visit]:
    """Visit a repository without pauses; return the card, and what else the visit brought."""
    stop = threading.Event()
    policy = replace(HostPolicy(0, 1, 0), rest=0.0, forgives=0.0)
    hosts = HostQueue(policy, stop)
    client = HttpClient(agent="Test", addresses=AnyAddresses(), hosts=hosts, stop=stop)
    budget = AskBudget(time.monotonic() + seconds, requests, pause=0)
    card = CheckCard()
    with closing(RepositoryAsker(url, client, limits, {}, budget)) as asker:
        result = visit(asker, card, clock, VisitOptions(**options))
    check_records(result.sample, (), card, result.formats, result.identify)
    return card, result


def failures(card: CheckCard, without: str = "AR") -> dict[str, str]:
    """Return what was first seen of each failed check, without those of some groups.

    Most repositories of the tests do not know wrong requests, A, and have odd records, R.
    """
    return {
        check: f"{noted[0].where}: {noted[0].seen}"
        for check, noted in card.findings.items()
        if check[0] not in without
    }
