"""Metrics of `sheaf serve` for Prometheus, at /metrics, which prometheus_client counts and writes.

All workers count in files of one folder, so that any of them answers for all. Labels are names of
the protocol and of pages alone: what clients write never becomes one.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from functions.http import http_message
from functions.http.http_message import OAI_PATH, UNKEPT, Call, FormError, HttpResponse, Reply
from functions.oai.request import VERBS

PATH = "/metrics"
_TYPE = "text/plain; version=0.0.4"
_PAGES = frozenset({"captures", "cdx", "content", "health", "record", "records", "search", "web"})
"""First parts of paths that are told apart; the others are `page`."""


class RequestMetrics:
    """Answers by `answer` and counts, and answers /metrics. Thread-safe.

    `health` describes the store (functions.http.health). The processes that share `folder` count
    together.
    """

    def __init__(
        self,
        answer: Callable[[Call], HttpResponse],
        health: Callable[[], Mapping[str, Any]],
        folder: Path,
    ) -> None:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)  # the library reads it when it loads
        import prometheus_client
        from prometheus_client import multiprocess
        from prometheus_client.metrics_core import GaugeMetricFamily, Metric

        self._answer, self._health = answer, health
        self._requests = prometheus_client.Counter(
            "sheaf_requests", "Requests answered.", ["about", "status"], registry=None
        )
        self._seconds = prometheus_client.Histogram(
            "sheaf_request_seconds", "Seconds until an answer began.", ["about"], registry=None
        )
        self._cached = prometheus_client.Counter(
            "sheaf_kept_pages", "Pages of lists that were answered from files.", registry=None
        )
        registry = prometheus_client.CollectorRegistry()
        multiprocess.MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
        self._write: Callable[[], bytes] = lambda: prometheus_client.generate_latest(registry)

        class StoreCollector:
            """What the store says at the time of the request."""

            def collect(self) -> Iterator[Metric]:
                """Yield whether the store is reached, and the snapshot in effect with its age."""
                report = health()
                readable = float(report["status"] != "the store cannot be read")
                yield GaugeMetricFamily("sheaf_store_readable", "1 or 0.", readable)
                if "snapshot" in report:
                    age = report["age_seconds"]
                    yield GaugeMetricFamily("sheaf_snapshot", "In effect.", report["snapshot"])
                    yield GaugeMetricFamily("sheaf_snapshot_age_seconds", "Its age.", age)

        registry.register(StoreCollector())

    def __call__(self, call: Call) -> HttpResponse:
        """Answer a request."""
        if call.path == PATH:
            reply = Reply(200, _TYPE, self._write(), {"Cache-Control": UNKEPT})
            return http_message.write(reply, call, http_message.compress)
        begun = perf_counter()
        response = self._answer(call)
        about = _name_of(call)
        self._seconds.labels(about).observe(perf_counter() - begun)
        self._requests.labels(about, str(response.status)).inc()
        if call.path == OAI_PATH and not isinstance(response.body, bytes):
            self._cached.inc()
        return response


def _name_of(call: Call) -> str:
    """Return the verb of a request of the protocol, else the name of what its path leads to."""
    if call.path.rstrip("/") != OAI_PATH:
        first = call.path[1:].partition("/")[0]
        return first if first in _PAGES else "page"
    try:
        verb = dict(call.pairs).get("verb", "")
    except FormError:
        return "refused"
    return verb if verb in VERBS else "refused"
