"""The questions of the guide for analysts, over an archive of every kind of record."""

import re
from pathlib import Path

import pytest

from tests.e2e.conftest import Home, make_home
from tests.pages import archive

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "analysts.md"
QUESTIONS = re.findall(
    r"^([^\n]*\?[^\n]*)\n\n```sql\n(.+?)```", GUIDE.read_text("utf-8"), re.S | re.M
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("analysts")
    other = make_home(folder / "other")
    page = {"http://other.example.net/": b"<title>Other</title>"}
    other.publish_pages(folder / "other.warc.gz", page)
    with other.served() as url:
        return archive.build(folder / "home", url)


def test_there_are_ten() -> None:
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize(("question", "sql"), QUESTIONS)
def test_each_question_has_an_answer(home: Home, question: str, sql: str) -> None:
    found = home("query", "--json", sql)
    assert found.code == 0, (question, found.err)
    assert found.out.count("\n") >= 1, question
