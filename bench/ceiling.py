"""What a month of the stack on AWS can cost at most, whoever asks whatever of it.

    python -m bench.ceiling RatePerSecond=2 Memory=512    # parameters; the others as the template

Requests are bounded by the rates of the API's routes, and Lambda by its concurrency. Everything
else costs only what its operator starts. Nothing bounds what CloudFront answers from its cache, nor
what objects that are redirected to S3 send (content.redirect_bytes).
"""

import sys
from dataclasses import dataclass
from typing import Any

from tests.template import TEMPLATE, Stack, load

MONTH = 31 * 86_400  # seconds
ANSWER = 4_000_000
"""Bytes of an answer at most: `LARGEST` of OAI-PMH and of indexes, `PART` of archived bytes."""

GETS = 20
"""Reads of a bucket for an answer at most; tests/e2e/test_cost.py allows 7 of those it measures."""

LOGGED = 2000  # bytes of the API's line and the function's lines for a request
ACCOUNT = 1000  # instances that an account has unless AWS gives it more

# List prices of us-east-1 in November 2026, from memory, in dollars.
GB_SECOND = {"arm64": 13.33e-6, "x86_64": 16.67e-6}
INVOCATION, API_UNIT, API_BYTES = 0.20e-6, 1.00e-6, 512 << 10
GET, STORED_GB = 0.40e-6, 0.023
LOG_GB, KEPT_LOG_GB = 0.50, 0.03
ALARM, DASHBOARD = 0.10, 3.00
TRAFFIC = ((100, 0.0), (10_140, 0.09), (40_960, 0.085), (102_400, 0.07), (float("inf"), 0.05))
"""Of each tier its GB, and the price of one; a GB has 2**30 bytes."""


@dataclass(frozen=True, slots=True)
class StackLimits:
    """What the template lets anybody ask of a stack.

    `rate` requests a second pass each of `routes`, `burst` more at once. `gigabytes` is the memory
    of all instances of the functions that answer. `fixed` dollars are for alarms and dashboards.
    """

    rate: float
    burst: float
    routes: int
    gigabytes: float
    architecture: str
    log_days: float
    fixed: float

    @classmethod
    def of(cls, stack: Stack) -> "StackLimits":
        """Return the limits of a stack. Only this knows how the template names them."""
        throttling = stack.resources("AWS::ApiGatewayV2::Stage")["HttpStage"][
            "DefaultRouteSettings"
        ]
        rate = float(throttling["ThrottlingRateLimit"])
        routes = len(stack.resources("AWS::ApiGatewayV2::Route"))
        functions = stack.resources("AWS::Serverless::Function")
        functions |= stack.resources("AWS::Lambda::Function")
        answering = [functions[name] for name in _ANSWERING if name in functions]
        return cls(
            rate,
            float(throttling["ThrottlingBurstLimit"]),
            routes,
            sum(_gigabytes(function, rate * routes) for function in answering),
            answering[0]["Architectures"][0],
            float(stack.resources("AWS::Logs::LogGroup")["OaiLog"]["RetentionInDays"]),
            ALARM * len(stack.resources("AWS::CloudWatch::Alarm"))
            + DASHBOARD * len(stack.resources("AWS::CloudWatch::Dashboard")),
        )

    @property
    def requests(self) -> float:
        """Requests that pass in a month."""
        return self.routes * (self.rate * MONTH + self.burst)

    def worst_month(self) -> dict[str, float]:
        """Return the dollars of each part of the bill, at most."""
        logs = self.requests * LOGGED / 1e9
        units = -(-ANSWER // API_BYTES)
        return {
            "Lambda, all instances busy": self.gigabytes * MONTH * GB_SECOND[self.architecture],
            "requests of the API and of Lambda": self.requests * (units * API_UNIT + INVOCATION),
            "reads of S3": self.requests * GETS * GET,
            "logs": logs * (LOG_GB + KEPT_LOG_GB * self.log_days / 30),
            "traffic": price_traffic(self.requests * ANSWER / 2**30),
            "alarms and dashboard": self.fixed,
        }


_ANSWERING = ("OaiFunction", "ContentFunction")


def _gigabytes(function: dict[str, Any], rate: float) -> float:
    """Return the memory of all instances that may run at once."""
    unreserved = min(ACCOUNT, rate * float(function["Timeout"]))
    instances = float(function.get("ReservedConcurrentExecutions", unreserved))
    return instances * float(function["MemorySize"]) / 1024


def price_traffic(gigabytes: float) -> float:
    """Return the dollars for traffic to the Internet in a month."""
    dollars = 0.0
    for tier, price in TRAFFIC:
        dollars += min(gigabytes, tier) * price
        gigabytes = max(0.0, gigabytes - tier)
    return dollars


def at_rest(limits: StackLimits, captures: float, bytes_a_capture: float) -> float:
    """Return the dollars of a month in which nobody asks anything: storage, alarms, dashboard."""
    return captures * bytes_a_capture / 1e9 * STORED_GB + limits.fixed


def load_limits(**parameters: str) -> StackLimits:
    """Return the limits of the template with these parameters."""
    return StackLimits.of(Stack(load(TEMPLATE.read_text("utf-8")), **parameters))


def main() -> None:
    month = load_limits(**dict(pair.split("=", 1) for pair in sys.argv[1:])).worst_month()
    for part, dollars in {**month, "together": sum(month.values())}.items():
        print(f"{dollars:12,.0f}  {part}")


if __name__ == "__main__":
    main()
