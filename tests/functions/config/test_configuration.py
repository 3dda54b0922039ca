import tomllib

import pytest

from functions.config import configuration, keys
from functions.snapshot.errors import ConfigurationError

VALID = """
[repository]
name = "An archive"
admin_emails = ["a@b.cz", "c@d.cz"]
namespace = "b.cz"
[pages]
records = 7
[sets.names]
"collection:a" = "The first"
"""


def test_values_and_defaults() -> None:
    read = configuration.parse(VALID, {})
    assert read["repository.name"] == "An archive"
    assert read["pages.records"] == 7
    assert read["pages.sets"] == 1000
    assert read["sets.names"] == {"collection:a": "The first"}


def test_the_environment_overrides() -> None:
    read = configuration.parse(
        VALID,
        {
            "SHEAF_PAGES_RECORDS": "9",
            "SHEAF_REPOSITORY_NAME": "Other",
            "SHEAF_DOCUMENTS_INCLUDE": '["errors"]',
            "SHEAF_REPOSITORY_ADMIN_EMAILS": '["x@y.cz"]',
            "OTHER_PAGES_SETS": "left alone",
        },
    )
    assert read["pages.records"] == 9
    assert read["repository.name"] == "Other"
    assert read["documents.include"] == ["errors"]
    assert read["repository.admin_emails"] == ["x@y.cz"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pages = 3", "unknown key pages"),
        ("[pages]\nrecord = 3", "unknown key pages.record; is it pages.records?"),
        ("[pages]\nrecords = 0", "pages.records is 0, expected a number from 1"),
        ('[pages]\nrecords = "7"', 'pages.records is "7", expected a number'),
        ("[pages]\nrecords = true", "pages.records is true"),
        ('[repository]\nnamespace = "nodot"', 'repository.namespace is "nodot", expected a domain'),
        ('[repository]\nadmin_emails = "a@b.cz"', "expected a list"),
        ('[repository]\nadmin_emails = ["nobody"]', "e-mail"),
        ('[sets.names]\n"a b" = "x"', "set specifications"),
        ('[sets.descriptions]\n"a b" = "x"', "set specifications"),
        ('[sets.descriptions]\na = " \\n"', 'sets.descriptions is {"a" = " \\n"}, expected'),
        ("[sets]\nrules = {}", "sets.rules is {}, expected a list of tables"),
        ("[sets]\nrules = [1]", "sets.rules[0] is 1, expected a table with set and one or more"),
        (
            '[[sets.rules]]\nhosts = ["a.cz"]',
            'sets.rules[0] is {"hosts" = ["a.cz"]}, expected a set: a setSpec such as',
        ),
        (
            '[[sets.rules]]\nset = "a"\nhosts = ["a.cz"]\n[[sets.rules]]\nset = "domain:x"',
            'sets.rules[1].set is "domain:x", expected a setSpec such as topic:news, whose first '
            "level is not domain, mime or collection",
        ),
        ('[[sets.rules]]\nset = "mime"\ntypes = ["a/b"]', 'sets.rules[0].set is "mime"'),
        ('[[sets.rules]]\nset = "a b"\ntypes = ["a/b"]', 'sets.rules[0].set is "a b"'),
        ("[[sets.rules]]\nset = 1", "sets.rules[0].set is 1"),
        ('[[sets.rules]]\nset = "a"', "languages, collections besides the set"),
        (
            '[[sets.rules]]\nset = "a"\nhost = ["a.cz"]',
            'sets.rules[0].host is ["a.cz"], expected one of the keys set, hosts,',
        ),
        ('[[sets.rules]]\nset = "a"\nhosts = []', "expected a list of host names such as"),
        ('[[sets.rules]]\nset = "a"\nhosts = "a.cz"', 'sets.rules[0].hosts is "a.cz"'),
        ('[[sets.rules]]\nset = "a"\nhosts = ["http://a.cz"]', 'hosts is ["http://a.cz"]'),
        ('[[sets.rules]]\nset = "a"\nhosts = ["škola.cz"]', "ones as punycode"),
        ('[[sets.rules]]\nset = "a"\nurl_prefixes = ["a.cz/"]', "URL prefixes with the scheme"),
        ('[[sets.rules]]\nset = "a"\ntypes = ["*/*"]', "media types such as text/html"),
        (
            '[[sets.rules]]\nset = "a"\nlanguages = ["česky"]',
            "language codes without a region, such as cs",
        ),
        ('[[sets.rules]]\nset = "a"\ncollections = ["a:"]', "collections as in `sheaf ingest"),
        ('[documents]\ninclude = ["all"]', 'documents.include is ["all"], expected a list of'),
        ("[http]\ntries = 0", "http.tries is 0, expected a number from 1 to 1000, or auto"),
        ("[http]\nhost_seconds = nan", "http.host_seconds is nan, expected seconds from 0"),
        ('[http]\ncommands = "x"', 'http.commands is "x", expected a table from gather,'),
        ("[http.commands.serve]\ntries = 1", "http.commands.serve is {"),
        ("[http.commands]\ngather = 1", "http.commands.gather is 1, expected a table of keys"),
        (
            "[http.commands.harvest]\nrobots = true",
            "http.commands.harvest.robots is true, expected one of the keys host_concurrent,",
        ),
        (
            '[http.commands.gather]\nports = ["a"]',
            'http.commands.gather.ports is ["a"], expected a list of ports',
        ),
        ('[fileset]\nstrategy = "ftp"', 'fileset.strategy is "ftp", expected auto, web, s3'),
        ("[fileset]\nstrategy = 3", "fileset.strategy is 3, expected auto, web, s3"),
        ("[fileset.strategy]\nfiles = 0", "fileset.strategy.files is 0, expected a number from 1"),
        ("[fileset.limits]\nmost = 1", "fileset.limits.most is 1, expected one of the keys files"),
        ("[gather]\nbatch = 5", "gather.batch is 5, expected a table of minutes (minutes from"),
        ("[gather]\nrobots = true", "unknown key gather.robots; known keys: batch,"),
        ("[repository", "sheaf.toml is not TOML, line 1"),
        ("\nx =", "sheaf.toml is not TOML, line 2: the value is missing or incomplete; texts"),
        ("[a.b]\n[a.b]", "line 2: the section [a.b] stands there twice; put its keys together"),
        ("[a]\nb = 1\nb = 2", "line 3: this key stands there twice; remove one of the lines: b"),
        ('[a]\nb = "x', "sheaf.toml is not TOML, line 2: Unterminated string: b"),
        ("[repositry]\na = 1", "unknown key repositry; is it repository?"),
        ("[nonsense]\na = 1", "unknown key nonsense; known keys: content"),
    ],
)
def test_what_is_wrong_is_told_with_key_value_and_what_was_expected(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        configuration.parse(text, {})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value).strip()[:60]


def test_rules_and_descriptions_of_sets() -> None:
    text = r"""
    [sets.descriptions]
    "topic:news" = "News,\nof all papers"
    [[sets.rules]]
    set = "topic:news"
    hosts = ["idnes.cz", "xn--kola-k1a.cz", "192.0.2.1", "2001:db8::1"]
    url_prefixes = ["http://www.novinky.cz/", "https://a.cz/š"]
    types = ["text/html", "image/*", "application/xhtml+xml"]
    languages = ["cs", "en"]
    collections = ["serials:novinky", "a b"]
    """
    read = configuration.parse(text, {})
    assert read["sets.rules"][0]["set"] == "topic:news"
    assert read["sets.descriptions"] == {"topic:news": "News,\nof all papers"}
    variable = '[{set = "a", hosts = ["a.cz"]}]'
    read = configuration.parse("", {"SHEAF_SETS_RULES": variable})
    assert read["sets.rules"] == [{"set": "a", "hosts": ["a.cz"]}]


def test_a_table_has_the_defaults_of_what_it_leaves_out() -> None:
    read = configuration.parse("[fileset]\nlimits = { files = 3 }\nstrategy = 's3'", {})
    assert read["fileset.limits"] == {"files": 3, "bytes": 64 * 10**9, "file_bytes": 64 * 10**9}
    assert read["fileset.strategy"]["backend"] == "s3"
    assert read["fileset.strategy"]["files"] == 20
    assert configuration.parse("", {})["fileset.strategy"]["backend"] == "auto"
    other = read.having("fileset.strategy", {"large": "archiveorg"})["fileset.strategy"]
    assert (other["backend"], other["large"]) == ("auto", "archiveorg")


def test_a_variable_is_a_name_or_a_table_where_the_key_takes_both() -> None:
    for text, backend, many in [("web", "web", "never"), ("{ bundle = 'many' }", "auto", "many")]:
        read = configuration.parse("", {"SHEAF_FILESET_STRATEGY": text})["fileset.strategy"]
        assert (read["backend"], read["bundle"]) == (backend, many)
    for given, wrong in [
        ("files = 0", r"files .*is 0, expected"),
        ("item_prefix = '-a'", r"item_prefix .*is \"-a\", expected at most 30 of"),
        ("collection = 'a b'", r"collection .*is \"a b\", expected the name"),
    ]:
        with pytest.raises(ConfigurationError, match=rf"fileset\.strategy\.{wrong}"):
            configuration.parse("", {"SHEAF_FILESET_STRATEGY": f"{{ {given} }}"})


_A = 'name = "a"\nurl = "http://a.cz/oai"\n'


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('name = "a"\n', r"repositories\[0\] is .*expected a table with name and url"),
        (_A.replace('"a"', '"a b"'), r"\[0\]\.name is"),
        (f'{_A}token = "SHEAF_KEY"', r"\[0\]\.token is .*does not begin with SHEAF_"),
        (f"{_A}every = 1", r"\[0\]\.every is 1, expected one of the keys name, url, former"),
        (f'{_A}former = ["http://a.cz/oai"]', "what no other repository has, and each URL once"),
        (f"{_A}[[repositories]]\n{_A}", r"\[1\] is \"a\", expected what no other repository has"),
    ],
)
def test_a_wrong_repository_is_named(text: str, wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=wrong):
        configuration.parse(f"[[repositories]]\n{text}", {})


def test_one_repository_at_most_is_replicated() -> None:
    rows = [f'{{ name = "{n}", url = "http://{n}.cz", replicate = true }}' for n in "ab"]
    one = configuration.parse(f"repositories = [{rows[0]}]", {})["repositories"]
    assert (one[0]["replicate"], one[0]["prefixes"]) == (True, ["oai_dc"])
    with pytest.raises(ConfigurationError, match=r"\[0\]\.replicate .* is true"):
        configuration.parse("", {"SHEAF_REPOSITORIES": f"[{', '.join(rows)}]"})


def test_there_are_few_keys() -> None:
    assert len(keys.KEYS) <= 100


def test_a_wrong_variable_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"SHEAF_PAGES_RECORDS.*many"):
        configuration.parse("", {"SHEAF_PAGES_RECORDS": "many"})


def test_an_unknown_variable_is_refused() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"unknown key SHEAF_PAGES_RECORD; is it SHEAF_PAGES_RECORDS\?",
    ):
        configuration.parse("", {"SHEAF_PAGES_RECORD": "5"})


def test_the_template_holds_every_key_and_its_default() -> None:
    text = configuration.template({"pages.records": 5})
    assert configuration.parse(text, {})["pages.records"] == 5
    every = "\n".join(
        line[2:] if line.startswith("# ") and " = " in line and "(" not in line else line
        for line in text.splitlines()
    )
    document = tomllib.loads(every)
    for key in keys.KEYS:
        section, _, name = key.name.partition(".")
        if not name:  # a list of tables
            continue
        expected = 5 if key.name == "pages.records" else key.default
        assert document[section][name] == expected


@pytest.mark.parametrize("value", ["", " ", "\0", "a\0", [""], [" "], {"": "x"}, {"a.cz": ""}])
def test_no_key_takes_what_is_empty_unless_it_says_so(value: object) -> None:
    accepted = {key.name for key in keys.KEYS if key.test(value)}
    assert accepted == {key.name for key in keys.KEYS if value == "" and "empty" in key.expected}
