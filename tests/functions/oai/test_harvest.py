"""No harvester ever misses a change: the model, and that the model would notice."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.oai.listing import ListService
from functions.reading.as_of import AsOf
from tests.extent import examples
from tests.functions.oai.model import Run


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 2**32))
def test_a_harvester_has_the_repository_s_state(seed):
    assert Run(seed).right()


@pytest.mark.thorough
@settings(max_examples=examples(250), deadline=None)
@given(st.integers(0, 2**32))
def test_a_harvester_has_every_record_anew_whose_format_is_made_otherwise(seed):
    assert Run(seed, remade=True).right()


@pytest.mark.thorough
@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 2**32))
def test_a_harvester_behind_a_cache_has_it_too(seed):
    """An older responseDate, as caches give it, is as true as it ever was."""
    assert Run(seed, cached=True).right()


def lost(runs: int, **settings: Any) -> bool:
    return any(Run(seed, **settings).wrong() for seed in range(runs))


def test_without_the_allowance_changes_are_lost():
    assert lost(300, allowance=0)


def test_without_reading_anew_at_a_list_s_end_changes_are_lost(monkeypatch: pytest.MonkeyPatch):
    reading = AsOf.reading
    monkeypatch.setattr(AsOf, "reading", lambda self, *, fresh=False: reading(self))
    assert lost(300)


def test_were_a_list_s_end_cached_changes_would_be_lost(monkeypatch: pytest.MonkeyPatch):
    shown = ListService._page
    monkeypatch.setattr(
        ListService, "_page", lambda *args: replace(shown(*args), pinned=args[1].pinned)
    )
    assert lost(300, cached=True)
