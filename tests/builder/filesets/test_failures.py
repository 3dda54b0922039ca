"""Every failure of an exchange is one status of the vocabulary, for a request and for a file."""

import pytest

from builder.filesets.download import api, download
from builder.filesets.status import BOTH, FILE, RESULT, STATUSES
from builder.http.errors import OUTCOMES, FetchError


@pytest.mark.parametrize("code", sorted(OUTCOMES))
def test_every_failure_has_a_status(code: str) -> None:
    failure = FetchError(code, "it was so")
    of_request, of_file = api.error_of(failure), download.error_of(failure)
    assert STATUSES[of_request.status].scope in (RESULT, BOTH)
    assert STATUSES[of_file.status].scope in (FILE, BOTH)
    assert of_request.code == of_file.code == code
    assert of_request.detail == of_file.detail == "it was so"
    assert not STATUSES[of_request.status].hit
    assert not STATUSES[of_file.status].hit


@pytest.mark.parametrize("table", [api.STATUSES, download.STATUSES])
def test_the_tables_name_failures_that_there_are(table: dict[str, str]) -> None:
    assert table.keys() <= OUTCOMES.keys()


@pytest.mark.parametrize("code", sorted(code for code, one in OUTCOMES.items() if one.soon))
def test_what_passes_may_be_otherwise_another_time(code: str) -> None:
    assert STATUSES[download.error_of(FetchError(code)).status].retryable
    if code != "robots-unreachable":
        assert STATUSES[api.error_of(FetchError(code)).status].retryable
