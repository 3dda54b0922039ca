"""Rules that exclude files or slow hosts down, and the plan with its estimates."""

from itertools import pairwise

import pytest

from builder.http.addresses import PublicAddresses, networks
from builder.http.errors import OUTCOMES
from builder.http.limits import Limits
from builder.sources.fulltexts.choice import GatherRules, OwnLimits
from tests.builder.http import site as web
from tests.builder.http.site import Site
from tests.builder.sources.fulltexts.test_command import Archive, archive, paper
from tests.e2e.conftest import sheaf

__all__ = ["archive"]


def test_rules_exclude_hosts_publishers_and_restricted_files(archive: Archive, site: Site) -> None:
    for n in range(4):
        site.pages[f"/{n}"] = web.text(f"{n}")
    site.pages["/3"] = web.redirect("http://away.example.org/x")
    barred = paper(2, site.url("/1"))
    barred = barred.replace(b"File-Format", b"File-Restriction: members only\nFile-Format")
    urls = (site.url("/0"), site.url("/3"), "http://no.example.org/")
    archive.ingest(paper(1, *urls), barred, paper(3, site.url("/2")))
    archive.rule(
        {"host": "*.example.ORG", "exclude": True},
        {"restricted": True, "exclude": True},
        {"publisher": "RePEc:AAA:nosuch", "exclude": True},
    )
    plan = archive.gather("--plan")
    assert plan["due"] == 3
    assert [(h["host"], h["due"], h["excluded"]) for h in plan["hosts"]] == [
        ("127.0.0.1", 3, 1),
        ("no.example.org", 0, 1),
    ]
    assert site.requests == []
    told = archive.gather()
    assert (told["appearances"], told["failures"]) == (2, {"excluded": 2})
    assert "/1" not in site.paths()
    archive.rule({"publisher": "repec:aaa", "exclude": True})
    assert archive.gather("--plan")["due"] == 0
    archive.rule()
    assert archive.gather("--plan")["due"] == 3


def test_a_rule_slows_a_host_down_and_the_plan_says_how_long_it_takes(
    archive: Archive, site: Site
) -> None:
    for n in range(4):
        site.pages[f"/{n}"] = web.text(f"{n}")
    archive.ingest(paper(1, *(site.url(f"/{n}") for n in range(4))))
    archive.set(host_seconds=0.3)
    archive.rule({"publisher": "RePEc:aaa", "seconds": 0.4})
    assert archive("gather").code == 0
    times = [r.at for r in site.requests if r.path != "/robots.txt"]
    assert all(after - before > 0.3 for before, after in pairwise(times))
    archive.rule({"host": "127.*", "seconds": 3600})
    done = archive("gather", "--plan", "--again")
    assert done.out.splitlines() == [
        "4 files are due, of 1 host; 0 excluded by gather.rules",
        "all will have been requested in about 4 hours: 4 files of 127.0.0.1",
        "  4 of 127.0.0.1: 4 hours",
    ]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ('host = "a"', "gather.rules[0] is"),
        ("exclude = true", "gather.rules[0] is"),
        ('host = "a"\nexclude = true\nseconds = 1', "gather.rules[0] is"),
        ('publisher = "aaa"\nexclude = true', "gather.rules[0].publisher is"),
        ('name = "a"', "gather.rules[0].name is"),
    ],
)
def test_a_wrong_rule_is_a_fault(archive: Archive, rule: str, told: str) -> None:
    archive.config.write_text(f"[[gather.rules]]\n{rule}\n")
    done = sheaf("gather", "--config", archive.config)
    assert done.code == 2
    assert told in done.err


def test_the_first_row_counts() -> None:
    rules = GatherRules.parse(
        [
            {"host": "a.org", "seconds": 5},
            {"host": "b.org", "restricted": True, "exclude": True},
            {"host": "*.org", "exclude": True},
        ]
    )
    assert [rules.excludes(host) for host in ("a.org", "b.org", "c.com")] == [False, True, False]
    assert [rules.seconds(host) for host in ("a.org", "c.com")] == [5, 0]


GUARD = PublicAddresses(frozenset({80, 8080}), networks(["10.0.0.0/8", "fd00::/8"]))
OWN = OwnLimits(GUARD, Limits(bytes=10_000), obey=True)


@pytest.mark.parametrize(
    ("code", "detail", "expected"),
    [
        ("address-refused", "10.0.0.1", True),
        ("address-refused", "10.0.0.1 is 10.0.0.1", True),
        ("address-refused", "a.org is 127.0.0.1, 10.0.0.1", True),
        (
            "address-refused",
            "not requested: a could not be reached 3 times: a is fd00::1%eth0",
            True,
        ),
        ("address-refused", "a.org is 127.0.0.1, ::1", False),
        ("address-refused", "a.org is ", False),
        ("port-refused", "a.org:8080", True),
        ("port-refused", "a.org:80801", False),
        ("port-refused", "::1:22", False),
        ("port-refused", "a.org:0", False),
        ("too-large", "10,000 bytes", True),
        ("too-large", "10,001 bytes", False),
        ("too-large", "more than 9,999 bytes", True),
        ("too-large", "more than 10,000 bytes", False),
        ("too-large", ", bytes", False),
        ("robots-disallowed", "http://a.org/robots.txt", False),
        ("not-found", "a.org:80", False),
    ],
)
def test_it_is_lifted(code: str, detail: str, expected: bool) -> None:
    assert OWN.lift(code, detail) == expected


def test_each_outcome_of_our_own_can_be_lifted() -> None:
    free = OwnLimits(GUARD, Limits(bytes=10_000), obey=False)
    detail = "a.org is 10.0.0.1, more than 9 bytes"
    for code, outcome in OUTCOMES.items():
        said = "a.org:80" if code == "port-refused" else detail
        assert free.lift(code, said) == outcome.ours
