"""The repository that harvesters are tested with is in order itself, and each defect shows."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from lxml import etree

from tests.builder.sources.harvest.defects import DEFECTS, defective
from tests.builder.sources.harvest.provider import Answer, Provider, items
from tests.functions.oai.validity import OAI, codes, valid

SOME = {one.identifier: one for one in items(50)}
LIST = {"verb": "ListRecords", "metadataPrefix": "oai_dc"}


def asked(provider: Provider, **arguments: str) -> Answer:
    return provider.answer(provider.call(urlencode(arguments), "gzip, deflate"))


def pages(provider: Provider, most: int = 6, **arguments: str) -> Iterator[Answer]:
    """Yield a list's pages, each asked for twice at most."""
    given = {**LIST, **arguments}
    for _ in range(most):
        answer = asked(provider, **given)
        again = asked(provider, **given)
        yield answer
        yield again
        try:
            token = next(etree.fromstring(again.body).iter(f"{OAI}resumptionToken"), None)
        except etree.XMLSyntaxError:
            return
        if token is None or not token.text:
            return
        given = {"verb": "ListRecords", "resumptionToken": token.text}


def test_a_repository_in_order_answers_validly_and_lists_each_item_once() -> None:
    provider = defective(SOME)
    found = []
    for answer in list(pages(provider))[::2]:
        root = valid(answer.body)
        found += [e.text for e in root.iter(f"{OAI}identifier")]
    assert found == sorted(SOME, key=lambda name: SOME[name].stamp)
    for verb in ("Identify", "ListSets", "ListMetadataFormats"):
        assert codes(valid(asked(provider, verb=verb).body)) == []
    one = asked(provider, verb="GetRecord", identifier="oai:a.cz:1", metadataPrefix="oai_dc")
    assert codes(valid(one.body)) == []
    assert codes(valid(asked(provider, **{**LIST, "from": "2027-01-01"}).body)) == [
        "noRecordsMatch"
    ]


_UNSEEN = {"no-identify", "until-future", "offset-tokens"}  # here, for lists that do not change
_SINCE = {
    "from-earliest": "2020-01-01",
    "no-dates": "2020-01-01",
    "ignores-dates": "2026-11-20",
    "tokens-lose-dates": "2026-11-20",
}


@pytest.mark.parametrize("name", sorted(DEFECTS.keys() - _UNSEEN))
def test_a_defect_shows(name: str) -> None:
    """What is answered differs from what a repository in order says."""
    faulty = defective(SOME, name, poison=frozenset({"oai:a.cz:7"}), token_life=1)
    none = name == "empty-list" or name.startswith("errors-")
    since = {"from": "2027-01-01"} if none else {}
    since = {"from": _SINCE[name]} if name in _SINCE else since
    assert list(pages(faulty, **since)) != list(pages(defective(SOME), **since))
