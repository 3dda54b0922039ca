"""Two visits of a repository that changes in between: `sheaf check --compare`."""

import json
from dataclasses import replace
from pathlib import Path

from tests.builder.sources.harvest.listening import serving
from tests.builder.sources.harvest.provider import Answer, Call, Provider, items
from tests.e2e.conftest import sheaf

PACE = "[http]\nhost_seconds = 0\n"
SECRET = "Bearer hunter2-hunter2"


def _repeat_key(provider: Provider, call: Call, answer: Answer) -> Answer:
    """Answer with what the client sent, as pages of errors do."""
    name = b"<repositoryName>"
    return replace(answer, body=answer.body.replace(name, name + SECRET.encode()))


def test_a_second_visit_asks_for_the_same_records_and_no_secret_is_told(tmp_path: Path) -> None:
    """Of a list longer than the sample, some were seen only before: they are asked for alone."""
    config, old, page = (tmp_path / name for name in ("sheaf.toml", "old.json", "card.html"))
    config.write_text(PACE)
    with serving(items(60)) as provider:
        provider.answers.append(_repeat_key)
        line = ("check", provider.url, "--sample", 7, "--config", config, "--html", page)
        line = (*line, "--header", f"Authorization: {SECRET}")
        old.write_text(sheaf(*line, "--json").out)
        sampled = [row["identifier"] for row in json.loads(old.read_text())["sample"]]
        for identifier in sampled[:2]:
            del provider.items[identifier]
        text = sheaf(*line, "--compare", old).out
    assert "C01" in text
    assert "C01" in page.read_text("utf-8")
    words = " ".join(text.split())
    assert all(f"[{identifier}]" in words for identifier in sampled[:2])
    for output in (old.read_text(), text, page.read_text("utf-8")):
        assert "hunter2" not in output
    assert "Authorization: ..." in page.read_text("utf-8")


def test_a_host_that_is_sent_is_no_secret() -> None:
    """Where answers have another address, the report shows which."""
    with serving(items(3)) as provider:
        other = provider.url.replace("127.0.0.1", "archive.example.org")
        provider.answers.append(
            lambda _, call, answer: replace(
                answer, body=answer.body.replace(provider.url.encode(), other.encode())
            )
        )
        host = other.split("/")[2]
        text = sheaf("check", provider.url, "--sample", 2, "--header", f"Host: {host}").out
    assert f"baseURL is '{other}'" in " ".join(text.split())
