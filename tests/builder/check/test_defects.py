"""Repositories with one defect each: the right check names it, and no other."""

from tests.builder.check.visiting import failures, visiting
from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import items


def test_a_repository_in_order_is_clean() -> None:
    with serving(items(50)) as provider:
        card, result = visiting(provider.url)
    assert failures(card) == {}
    assert result.walk is not None
    assert (result.walk.count, result.walk.ended, len(result.sample)) == (50, True, 100)
