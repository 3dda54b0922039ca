"""Profiles of the machine: HYPOTHESIS_PROFILE names one."""

from hypothesis import HealthCheck, Phase, settings

from tests.builder.conftest import world
from tests.extent import examples

__all__ = ["world"]

COMMON = settings(deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))

# To make a failure small takes minutes: only the long profile does, and only that one takes other
# examples each time: what a change of the code breaks is to be told from what was there before.
settings.register_profile(
    "ordinary",
    COMMON,
    derandomize=True,
    max_examples=examples(3),
    stateful_step_count=30,
    phases=[p for p in Phase if p not in (Phase.shrink, Phase.explain)],
)
settings.register_profile("long", COMMON, max_examples=200, stateful_step_count=60)
