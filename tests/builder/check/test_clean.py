"""Repositories that are in order are clean: our own, from a store and from files, and a peer."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

import pytest

from builder.check.checks import load_checks
from builder.serve.site_folder import SiteFolder
from functions.oai.application import Application
from tests.builder.check.visiting import failures, visiting
from tests.builder.conftest import World
from tests.builder.serve.site_world import make_site_world
from tests.listening import QuietHandler, listening
from tests.serving import serving

NEVER = {"C", "R"}
"""Groups that a visit alone does not check."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = make_site_world(tmp_path_factory.mktemp("world"))
    yield world
    world.close()


@pytest.mark.parametrize("form", ["store", "site"])
@pytest.mark.parametrize("prefix", ["oai_dc", "marc21"])
def test_our_own_answers_are_clean(world: World, form: str, prefix: str) -> None:
    settings = world.configuration(SHEAF_PAGES_RECORDS="7")
    own: Any = Application(world.repository(), settings, world.clock)
    if form == "site":
        own = SiteFolder(world.root / "site")
    with serving(own.answer) as server:
        card, result = visiting(f"{server.url}/oai", clock=world.clock, prefix=prefix)
    assert failures(card, without="R") == {}
    assert result.walk is not None
    assert result.walk.ended
    unseen = {number for number in load_checks() if number[0] not in NEVER} - card.applied
    assert unseen <= {"L14"} or prefix == "marc21" or form == "site", unseen


class _PeerData:
    """Records for `oaipmh`: the interface by which its users give theirs."""

    def __init__(self, common: Any, errors: Any) -> None:
        self._common, self._errors = common, errors
        self.url = ""
        first = datetime(2026, 1, 1)
        self._rows = [(f"oai:peer.example.org:{n}", first + timedelta(hours=n)) for n in range(25)]

    def identify(self) -> Any:
        return self._common.Identify(
            repositoryName="Peer",
            baseURL=self.url,
            protocolVersion="2.0",
            adminEmails=["a@example.org"],
            earliestDatestamp=self._rows[0][1],
            deletedRecord="no",
            granularity="YYYY-MM-DDThh:mm:ssZ",
            compression=["identity"],
            toolkit_description=False,
        )

    def listMetadataFormats(self, identifier: str | None = None) -> list[tuple[str, str, str]]:  # noqa: N802
        if identifier is not None:
            self._row(identifier)
        space = "http://www.openarchives.org/OAI/2.0/oai_dc/"
        return [("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", space)]

    def listSets(self, **_: Any) -> Any:  # noqa: N802
        raise self._errors.NoSetHierarchyError("no sets")

    def getRecord(self, metadataPrefix: str, identifier: str) -> Any:  # noqa: N802, N803
        self._format(metadataPrefix)
        return self._record(self._row(identifier))

    def listRecords(self, metadataPrefix: str, **asked: Any) -> list[Any]:  # noqa: N802, N803
        self._format(metadataPrefix)
        return [self._record(row) for row in self._rows_of(**asked)]

    def listIdentifiers(self, metadataPrefix: str, **asked: Any) -> list[Any]:  # noqa: N802, N803
        self._format(metadataPrefix)
        return [self._record(row)[0] for row in self._rows_of(**asked)]

    def _rows_of(
        self, cursor: int = 0, batch_size: int = 10, set: str | None = None, **dates: Any
    ) -> list[tuple[str, datetime]]:
        if set is not None:
            self.listSets()
        since, until = dates.get("from_") or datetime.min, dates.get("until") or datetime.max
        if since > until:
            raise self._errors.BadArgumentError("from is after until")
        rows = [row for row in self._rows if since <= row[1] <= until]
        return rows[cursor : cursor + batch_size]

    def _format(self, prefix: str) -> None:
        if prefix != "oai_dc":
            raise self._errors.CannotDisseminateFormatError(prefix)

    def _row(self, identifier: str) -> tuple[str, datetime]:
        for row in self._rows:
            if row[0] == identifier:
                return row
        raise self._errors.IdDoesNotExistError(identifier)

    def _record(self, row: tuple[str, datetime]) -> Any:
        header = self._common.Header(None, row[0], row[1], [], False)
        fields = {"title": [f"Title of {row[0]}"], "identifier": ["https://peer.example.org/1"]}
        return header, self._common.Metadata(None, fields), None


def test_a_peer_has_its_two_known_faults_alone() -> None:
    """Its errors have no attributes of `request`, and its lists no last token.

    Its interface does not see what is repeated: A03 and A06.
    """
    common = pytest.importorskip("oaipmh.common", reason="oaipmh of PyPI is not installed")
    from oaipmh import error, metadata, server

    data = _PeerData(common, error)
    registry = metadata.MetadataRegistry()
    registry.registerWriter("oai_dc", server.oai_dc_writer)
    peer = server.BatchingServer(data, registry, resumption_batch_size=10)

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self._answer(self.path.partition("?")[2])

        def do_POST(self) -> None:
            self._answer(self.read_body().decode())

        def _answer(self, query: str) -> None:
            body = peer.handleRequest(dict(parse_qsl(query, keep_blank_values=True)))
            self.reply(200, body, {"Content-Type": "text/xml"})

    with listening(Handler) as port:
        data.url = f"http://127.0.0.1:{port}/oai"
        card, result = visiting(data.url, clock=lambda: datetime.now(UTC))
    assert {*failures(card, without="R")} == {"A03", "A06", "E09", "L07"}
    assert result.walk is not None
    assert result.walk.count == 25
