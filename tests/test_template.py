"""What stands on AWS, as far as it can be told without AWS's own tools (tests/aws has those)."""

import importlib.util
import json
import re
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest

from builder.aws import publisher
from builder.obi.history import COMMIT, LOG
from builder.obi.key import run as key_of_run
from builder.obi.publishes import PUBLISHES
from builder.outputs.log.tiles import LOG as SIGNED
from builder.outputs.tables.index import FOLDER as TABLES
from builder.store.identity import TRACES
from builder.store.s3 import PROOF
from functions.config import configuration, keys
from functions.content.handler import PATHS
from functions.http import origin
from functions.oai import request
from functions.snapshot import dumps, layout
from functions.snapshot.fixity import FIXITY
from tests.template import PARTS, ROOT, TEMPLATE, Stack, listed, load, options, packed
from tests.template import statements as statements_of
from tests.test_architecture import imports, third_parties

TEXT = TEMPLATE.read_text("utf-8")
PSEUDO_TIME = "2026-11-23T04:00:00Z"
WHOLE = load(TEXT)
FULL = {
    "CloudFront": "yes",
    "CloudFrontLogs": "yes",
    "RatePerClient": "2000",
    "DomainName": "oai.example.org",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1a2b",
    "PublishSchedule": "rate(1 day)",
    "PublishOnIntake": "yes",
    "PublishWithinDays": "3",
    "ExpireSchedule": "rate(7 days)",
    "VerifySchedule": "cron(0 4 * * ? *)",
    "Deployment": "Canary10Percent5Minutes",
    "MonthlyBudget": "50",
    "SigningKey": "arn:aws:kms:eu-central-1:123456789012:key/1a2b",
    "Ingest": "yes",
    "IngestOnUpload": "yes",
    "Content": "yes",
    "ArchivesBucket": "some-archives",
    "ArchivesPrefix": "crawls/all",
    "Filesets": "yes",
    "AlarmEmail": "you@example.org",
    "AdminEmail": "you@example.org",
    "Namespace": "example.org",
}
STACKS = {
    "defaults": Stack(WHOLE),
    "all": Stack(WHOLE, **FULL),
    "a bucket that is there": Stack(WHOLE, **FULL, ExistingBucket="a-bucket"),
    "emulators": Stack(WHOLE, S3Endpoint="http://127.0.0.1:4566"),
    "a bucket of archives": Stack(WHOLE, Content="yes", ArchivesBucket="some-archives"),
    "captures of its own": Stack(WHOLE, Content="yes"),
}
every_stack = pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS.keys())


@pytest.fixture(scope="module")
def package() -> ModuleType:
    spec = importlib.util.spec_from_file_location("package", ROOT / "infra" / "package.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["package"] = module
    spec.loader.exec_module(module)
    return module


def test_the_log_of_the_api_knows_a_request_as_the_function_s_does() -> None:
    (stage,) = STACKS["defaults"].resources("AWS::ApiGatewayV2::Stage").values()
    entry = json.loads(stage["AccessLogSettings"]["Format"])
    assert entry["request"] == "$context.awsEndpointRequestId"
    assert "$context.requestId" in entry.values()
    assert not [value for value in entry.values() if "identity" in value]  # no address of a client


def altered(name: str, stack: Stack) -> Stack:
    """Return the stack with another value of a parameter, or of an option."""
    values = stack.options | stack.parameters
    del values["Options"]
    now, row = values[name], WHOLE["Parameters"].get(name, {})
    if now.isdigit():
        another = str(int(now) + 1)
    else:
        another = next(v for v in row.get("AllowedValues", ["x", "y"]) if v != now)
    return Stack(WHOLE, **{**values, name: another})


@every_stack
def test_a_version_is_another_one_just_where_the_function_is(stack: Stack) -> None:
    """Of an unchanged function AWS refuses another version; a changed one needs it to be called."""

    def of(one: Stack) -> tuple[object, object]:
        row = one.resources("AWS::Serverless::Function")["OaiFunction"]
        told = {key: row[key] for key in ("Environment", "MemorySize", "Architectures")}
        # a number that AWS gives a text when it is another one: of any length, unlike a description
        (text,) = (
            text["Content"]
            for name, text in one.resources("AWS::AppConfig::HostedConfigurationVersion").items()
            if name.lower() == row["VersionDescription"]
        )
        return told, text

    before = of(stack)
    for parameter in {*WHOLE["Parameters"], *options(WHOLE)} - {"Options"}:
        after = of(altered(parameter, stack))
        assert (before[0] == after[0]) == (before[1] == after[1]), parameter


def test_a_deployment_goes_back_at_an_alarm_where_it_is_made_step_by_step() -> None:
    row = STACKS["all"].functions()["OaiFunction"]
    assert row["AutoPublishAlias"] == "live"
    how = row["DeploymentPreference"]
    assert how["Enabled"] == how["Type"] == "Canary10Percent5Minutes"
    assert how["Alarms"] == ["errorsalarm", "shiftalarm"]
    # What SAM takes for no; its own condition could not be a parameter's.
    assert WHOLE["Parameters"]["Deployment"]["Default"] == "false"
    routed = STACKS["all"].resources("AWS::ApiGatewayV2::Integration").values()
    content = "arn:aws:lambda:eu-central-1:123456789012:function:ContentFunction"
    assert {row["IntegrationUri"] for row in routed} == {"oaifunction.alias", content}


def test_the_guided_path_asks_a_dozen_questions() -> None:
    assert len(WHOLE["Parameters"]) <= 13
    for name, row in WHOLE["Parameters"].items():
        assert "Default" in row, name


def test_a_part_is_given_each_of_its_parameters_and_no_other() -> None:
    for name, properties in STACKS["all"].resources("AWS::CloudFormation::Stack").items():
        part = STACKS["all"].part(name)
        assert set(properties["Parameters"]) == set(part.template["Parameters"]), name
        for parameter, value in part.parameters.items():
            row = part.template["Parameters"][parameter]
            assert re.search(row.get("AllowedPattern", ""), value), (name, parameter)
            assert value in map(str, row.get("AllowedValues", [value])), (name, parameter)
            if row["Type"] == "Number":
                assert row.get("MinValue", 0) <= int(value) <= row.get("MaxValue", int(value))


def test_what_has_a_state_is_in_the_core_whatever_parts_come_and_go() -> None:
    """And by the names that it had when there were no parts, so that an update keeps it."""
    kept = {"StoreBucket", "HttpApi", "Distribution", "FilesetQueue", "FilesetDeadLetters"}
    assert kept | {"PublishFailures", "EdgeLogs", "ContentRoute"} <= set(WHOLE["Resources"])
    for path in PARTS:
        kinds = {row["Type"] for row in load(path.read_text("utf-8"))["Resources"].values()}
        assert not kinds & {"AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::ApiGatewayV2::Api"}, path


def test_every_parameter_is_shown_in_a_group() -> None:
    groups = WHOLE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert sorted(WHOLE["Parameters"]) == sorted(n for g in groups for n in g["Parameters"])


def rights(stack: Stack, role: str) -> dict[str, list[str]]:
    """Return what a role may do: each action, with its resources."""
    may: dict[str, list[str]] = {}
    for name, statement in statements_of(stack):
        for action in listed(statement["Action"]):
            if name == role:
                may.setdefault(action, []).extend(listed(statement["Resource"]))
    return may


def bucket_of(stack: Stack) -> str:
    return f"arn:aws:s3:::{stack.resolved(WHOLE['Outputs']['Bucket']['Value'])}"


@every_stack
def test_no_role_may_do_whatever_it_likes(stack: Stack) -> None:
    for role, statement in statements_of(stack):
        assert statement["Effect"] == "Allow"
        assert not [a for a in listed(statement["Action"]) if "*" in a], role
        for resource in listed(statement["Resource"]):
            if statement["Action"] == "lambda:GetAccountSettings":  # AWS has no resource for it
                assert resource == "*"
                continue
            assert resource.startswith("arn:aws:"), role
            assert re.fullmatch(r"[^*]+(/\*(/[a-z.]+)?|:\*)?", resource), (role, resource)


@every_stack
def test_what_serves_reads_what_is_published_and_nothing_else(stack: Stack) -> None:
    at, may = bucket_of(stack), rights(stack, "OaiRole")
    published = (layout.POINTER, f"{layout.SNAPSHOTS}*", f"{layout.RECORDS}*", dumps.INDEX, FIXITY)
    assert may.pop("s3:GetObject") == [f"{at}/store/{key}" for key in published]
    assert may.pop("s3:ListBucket") == [at]
    assert all(action.startswith("logs:") for action in may)


@every_stack
def test_what_gives_content_reads_what_has_bytes_besides(stack: Stack) -> None:
    at = bucket_of(stack)
    may = {a: r for a, r in rights(stack, "ContentRole").items() if not a.startswith("logs:")}
    functions = stack.functions()
    if "ContentFunction" not in functions:
        assert not may
        return
    told = configuration.parse("", functions["ContentFunction"]["Environment"]["Variables"])
    assert told["content.serve"] is True
    places = [place.replace("s3://", "arn:aws:s3:::") for place in told["content.archives"]]
    own = (layout.POINTER, f"{layout.SNAPSHOTS}*", f"{layout.RECORDS}*")
    own += (f"{layout.REPLAY}*", "obi/*", "filesets/*", "warcs/*")
    uploads = [] if places else [f"{at}/archives/*"]  # where those lie that the machine reads
    assert may == {
        "s3:GetObject": [f"{at}/store/{key}" for key in own]
        + uploads
        + [f"{one}/*" for one in places],
        "s3:ListBucket": [at, *dict.fromkeys(one.partition("/")[0] for one in places)],
    }


def test_what_is_in_front_is_known_by_a_secret_that_nobody_else_has() -> None:
    for stack in (STACKS["all"], Stack(WHOLE, CloudFront="yes", Content="yes")):
        (distribution,) = stack.resources("AWS::CloudFront::Distribution").values()
        (place,) = distribution["DistributionConfig"]["Origins"]
        (header,) = place["OriginCustomHeaders"]
        assert header["HeaderName"] == origin.HEADER
        functions = stack.functions()
        for name in ("OaiFunction", "ContentFunction"):
            told = functions[name]["Environment"]["Variables"][origin.VARIABLE]
            assert told == header["HeaderValue"] == "{{resolve:secretsmanager:originsecret}}"
    assert not STACKS["defaults"].resources("AWS::SecretsManager::Secret")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (";".join(f"{name}={value}" for name, value in options(WHOLE).items()), True),
        (packed(WHOLE, FULL)["Options"], True),
        ("Memory=2048;", True),
        ("PublishSchedule=cron(0 3,15 * * ? *);BaseUrl=https://a.org/x=y", True),
        ("Memory", False),
        ("Memory=", False),
        ("memory=2048", False),
        ("Nonesuch=1", False),
        ("PublishSchedule=daily", False),
        ("DomainName=a.org", False),
        ("CertificateArn=arn:aws:acm:x:123456789012:certificate/1;DomainName=a.org", False),
        (
            "SigningKey=arn:aws:kms:x:123456789012:k;SigningSecret=arn:aws:secretsmanager:x:123456789012:k",
            False,
        ),
    ],
)
def test_options_that_are_unknown_or_do_not_go_together_are_refused(text: str, taken: bool) -> None:
    pattern = WHOLE["Parameters"]["Options"]["AllowedPattern"]
    assert bool(re.fullmatch(pattern, text)) == taken


def test_a_client_that_asks_too_often_is_told_so_and_no_address_is_kept() -> None:
    (acl,) = STACKS["all"].resources("AWS::WAFv2::WebACL").values()
    (rule,) = acl["Rules"]
    assert rule["Statement"]["RateBasedStatement"]["Limit"] == "2000"
    answer = rule["Action"]["Block"]["CustomResponse"]
    assert answer["ResponseCode"] == 429
    assert answer["CustomResponseBodyKey"] in acl["CustomResponseBodies"]
    for visible in (acl["VisibilityConfig"], rule["VisibilityConfig"]):
        assert visible["SampledRequestsEnabled"] is False
    (distribution,) = STACKS["all"].resources("AWS::CloudFront::Distribution").values()
    assert distribution["DistributionConfig"]["WebACLId"].endswith(":ClientRate")
    plain = Stack(WHOLE, CloudFront="yes").resources("AWS::CloudFront::Distribution")
    assert "WebACLId" not in plain["Distribution"]["DistributionConfig"]


def test_what_is_refused_to_a_service_worker_is_not_answered_from_the_cache() -> None:
    (policy,) = STACKS["all"].resources("AWS::CloudFront::CachePolicy").values()
    key = policy["CachePolicyConfig"]["ParametersInCacheKeyAndForwardedToOrigin"]
    assert "Service-Worker" in key["HeadersConfig"]["Headers"]


def test_logs_outlive_the_stack_and_no_name_of_theirs_is_taken_for_another() -> None:
    templates = [WHOLE, *(load(path.read_text("utf-8")) for path in PARTS)]
    kept = {
        name: row
        for template in templates
        for name, row in template["Resources"].items()
        if row["Type"] == "AWS::Logs::LogGroup" or name == "EdgeLogs"
    }
    assert len(kept) == 7
    logs = STACKS["all"].resources("AWS::Logs::LogGroup")
    for name, row in kept.items():
        assert row["DeletionPolicy"] == "RetainExceptOnCreate", name
        assert row["UpdateReplacePolicy"] == "Retain", name
        told = logs.get(name) or STACKS["all"].resolved(row["Properties"])
        named = told.get("LogGroupName", "")
        assert not named or "2d3c" in named, name  # of the stack's own id
        days = (
            told.get("RetentionInDays")
            or told["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"]
        )
        assert days == "90", name
    (api,) = (STACKS["all"].resolved(kept["ApiLog"]["Properties"])["LogGroupName"],)
    assert api == "/aws/vendedlogs/sheaf-api-0f1e-2d3c"  # API Gateway's own beginning


def test_content_is_routed_by_the_paths_that_its_handler_takes() -> None:
    routes = STACKS["all"].resources("AWS::ApiGatewayV2::Route")
    integration = {name: row["Target"].partition("/")[2] for name, row in routes.items()}
    assert integration.pop("HttpRoute") == "httpintegration"
    assert set(integration.values()) == {"contentintegration"}
    found = {
        row["RouteKey"].removeprefix("ANY ").replace("{proxy+}", "x") for row in routes.values()
    }
    assert {path.partition("/x")[0] for path in found - {"$default"}} == {*PATHS}
    assert set(STACKS["defaults"].resources("AWS::ApiGatewayV2::Route")) == {"HttpRoute"}
    told = STACKS["all"].functions()["OaiFunction"]["Environment"]["Variables"]
    assert told["SHEAF_CONTENT_SERVE"] == "true"  # the page for people tells of it


@every_stack
def test_what_publishes_removes_neither_the_pointer_nor_what_is_not_sheaf_s(stack: Stack) -> None:
    at = f"{bucket_of(stack)}/store"
    may = rights(stack, "PublishRole")
    written = [f"{at}/{key}*" for key in (layout.SNAPSHOTS, layout.RECORDS, dumps.FOLDER, TABLES)]
    derived = [f"{at}/{SIGNED}{name}/*" for name in ("tile", "snapshots", "runs")]
    assert may["s3:GetObject"] == [f"{at}/*"]
    assert may["s3:PutObject"] == [
        f"{at}/{layout.POINTER}",
        f"{at}/{layout.IDENTITY}",
        f"{at}/{PROOF}",
        f"{at}/{FIXITY}",
        *written,
        f"{at}/{SIGNED}*",
        f"{at}/{PUBLISHES}*",
        f"{at}/{layout.INTAKE}*/{layout.RUN_PUBLISHED}",
    ]
    assert may["s3:DeleteObject"] == [f"{at}/{layout.INTAKE}*", *written, *derived]


@pytest.mark.parametrize(
    ("key", "actions"),
    [
        ("", []),
        ("arn:aws:kms:eu-central-1:123456789012:key/1a2b", ["kms:GetPublicKey", "kms:Sign"]),
        (
            "arn:aws:secretsmanager:eu-central-1:123456789012:secret:log-1a2b",
            ["secretsmanager:GetSecretValue"],
        ),
    ],
)
def test_what_publishes_may_use_the_key_that_signs(key: str, actions: list[str]) -> None:
    given = {"SigningKey": "", "SigningSecret": ""}
    given["SigningSecret" if "secret:" in key else "SigningKey"] = key
    stack = Stack(WHOLE, **given)
    found = [s for _, s in statements_of(stack) if s["Resource"] == key]
    assert [action for one in found for action in listed(one["Action"])] == actions
    signers = [
        properties
        for properties in stack.functions().values()
        if "SHEAF_SIGN_KEY" in properties.get("Environment", {}).get("Variables", {})
    ]
    values = {one["Environment"]["Variables"]["SHEAF_SIGN_KEY"] for one in signers}
    assert values == ({key} if key else set())


@every_stack
def test_each_function_has_a_role_of_its_own(stack: Stack) -> None:
    roles = [p["Role"] for p in stack.functions().values()]
    filesets = bool(stack.resources("AWS::Lambda::EventSourceMapping"))
    content = len(stack.resources("AWS::ApiGatewayV2::Integration")) - 1
    ingest = len(stack.resources("AWS::StepFunctions::StateMachine"))
    assert len(set(roles)) == len(roles) == 2 + filesets + content + ingest


def test_the_machine_that_ingests_waits_for_a_function_and_commits_the_whole_alone() -> None:
    (machine,) = STACKS["all"].resources("AWS::StepFunctions::StateMachine").values()
    definition = json.loads(machine["DefinitionString"])
    assert definition["TimeoutSeconds"] == 604_800  # CloudFormation makes strings of parameters
    states = definition["States"]
    assert states["Plan"]["Parameters"]["most"] == 100
    assert states["Read"]["MaxConcurrencyPath"] == "$.concurrency"
    tasks = [states["Plan"], states["Read"]["ItemProcessor"]["States"]["Part"], states["Commit"]]
    assert {state["Type"] for state in states.values()} == {"Task", "Choice", "Map"}
    for task in tasks:
        busy = task["Retry"][0]
        assert "Lambda.TooManyRequestsException" in busy["ErrorEquals"]
        waits = busy["MaxDelaySeconds"] * busy["MaxAttempts"]
        assert waits > definition["TimeoutSeconds"]  # so that this alone ends it
        assert "Catch" not in task
    alarms = STACKS["all"].resources("AWS::CloudWatch::Alarm").values()
    names = {alarm["MetricName"] for alarm in alarms if alarm["Namespace"] == "AWS/States"}
    assert names == {"ExecutionsFailed", "ExecutionsTimedOut"}


def test_what_cannot_be_begun_is_kept_and_told() -> None:
    """What a rule cannot hand over, EventBridge drops after a day; a queue, after two weeks."""
    stack = STACKS["all"]
    for rule in stack.resources("AWS::Events::Rule").values():
        for target in rule["Targets"]:
            assert target["DeadLetterConfig"]["Arn"].endswith(":PublishFailures")
    watched = {
        (alarm["MetricName"], alarm["Dimensions"][0]["Value"])
        for alarm in stack.resources("AWS::CloudWatch::Alarm").values()
        if alarm.get("Namespace") == "AWS/SQS"
    }
    for name in stack.resources("AWS::SQS::Queue"):
        is_worked_on = name == "FilesetQueue"
        metric = (
            "ApproximateAgeOfOldestMessage"
            if is_worked_on
            else ("ApproximateNumberOfMessagesVisible")
        )
        assert (metric, f"{name.lower()}.queuename") in watched


@every_stack
def test_what_ingests_writes_the_intake_and_nothing_else(stack: Stack) -> None:
    at = f"{bucket_of(stack)}/store"
    may = rights(stack, "IngestRole")
    if not stack.resources("AWS::StepFunctions::StateMachine"):
        assert may == {}
        return
    assert may["s3:PutObject"] == [f"{at}/{layout.INTAKE}*", f"{at}/{PROOF}"]
    assert may["s3:DeleteObject"] == [f"{at}/{layout.INTAKE}*"]
    assert may["s3:GetObject"] == [
        f"{at}/{layout.POINTER}",
        f"{at}/{layout.IDENTITY}",
        *(f"{at}/{key}" for key in (*TRACES, FIXITY)),
        f"{at}/{layout.SNAPSHOTS}*",
        f"{at}/{layout.RECORDS}sources/*",
        f"{at}/{layout.INTAKE}*",
        "arn:aws:s3:::some-archives/*",
    ]


@every_stack
def test_what_archives_datasets_writes_them_and_the_intake_and_nothing_else(stack: Stack) -> None:
    at = bucket_of(stack)
    may = rights(stack, "FilesetRole")
    if not stack.resources("AWS::SQS::Queue").keys() & {"FilesetQueue"}:
        assert not may
        return
    written = [f"{at}/store/{k}*" for k in ("filesets/", "warcs/", layout.INTAKE)]
    assert may["s3:PutObject"] == may["s3:GetObject"] == [*written, f"{at}/store/{PROOF}"]
    assert may["s3:DeleteObject"] == written
    assert may["s3:ListBucket"] == [at]
    assert {a for a in may if a.startswith("sqs:")} == {
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
    }


def test_a_request_for_a_dataset_that_fails_comes_again_and_ends_as_a_dead_letter() -> None:
    stack = STACKS["all"]
    queues = stack.resources("AWS::SQS::Queue")
    redrive = queues["FilesetQueue"]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"].endswith(":FilesetDeadLetters")
    function = stack.functions()["FilesetFunction"]
    # as AWS advises, that a message is not another's while the function has it
    assert queues["FilesetQueue"]["VisibilityTimeout"] == 6 * function["Timeout"]
    (source,) = stack.resources("AWS::Lambda::EventSourceMapping").values()
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source["EventSourceArn"].endswith(":FilesetQueue")
    alarms = stack.resources("AWS::CloudWatch::Alarm")
    (dimension,) = alarms["FilesetAlarm"]["Dimensions"]
    assert dimension["Value"] == "filesetdeadletters.queuename"


def test_timers_give_the_publisher_tasks_that_it_knows(tmp_path: Path) -> None:
    timers = STACKS["all"].resources("AWS::Scheduler::Schedule")
    targets = {name: row["Target"] for name, row in timers.items()}
    assert {row["Arn"].partition("function:")[2] for row in targets.values()} == {"PublishFunction"}
    for row in targets.values():  # so that one that cannot be called is an alarm as well
        assert row["DeadLetterConfig"]["Arn"].endswith(":PublishFailures")
    assert "Input" not in targets["PublishTimer"]
    variables = {"SHEAF_STORE_URI": str(tmp_path)}
    for name in ("ExpireTimer", "VerifyTimer"):
        given = targets[name]["Input"].replace("<aws.scheduler.scheduled-time>", PSEUDO_TIME)
        told = publisher.run(json.loads(given), variables, tmp_path, tmp_path)
        assert "nothing is published" in str(told["message"])
    alone = Stack(WHOLE, VerifySchedule="rate(1 day)")
    assert set(alone.resources("AWS::Scheduler::Schedule")) == {"VerifyTimer"}
    assert "PublishTimerRole" in alone.resources("AWS::IAM::Role")


@every_stack
def test_what_the_functions_are_told_is_a_configuration(stack: Stack) -> None:
    """An unknown variable would be refused by each of them, at its first request."""
    for properties in stack.functions().values():
        variables = properties["Environment"]["Variables"]
        settings = configuration.parse("", variables)
        assert settings["store.uri"].startswith("s3://")
        assert {type(value) for value in variables.values()} == {str}


def test_parameters_that_are_empty_leave_it_to_the_packed_configuration() -> None:
    for properties in STACKS["defaults"].functions().values():
        told = set(properties["Environment"]["Variables"])
        assert told == {"SHEAF_STORE_URI"}


def test_the_base_url_is_the_nearest_to_those_who_ask() -> None:
    def url(**parameters: str) -> str | None:
        stack = Stack(WHOLE, **parameters)
        functions = stack.functions()
        told = functions["OaiFunction"]["Environment"]["Variables"]
        found = told.get("SHEAF_REPOSITORY_BASE_URL")
        shown = stack.resolved(WHOLE["Outputs"]["BaseUrl"]["Value"])
        assert found in (None, shown)
        return found

    domain = {"DomainName": "oai.example.org"}
    assert url() is None  # as the request has it
    assert url(CloudFront="yes") == "https://distribution.domainname/oai"
    assert url(CloudFront="yes", **domain) == "https://oai.example.org/oai"
    assert url(**domain) == "https://oai.example.org/oai"
    assert url(BaseUrl="https://a.org/b", **domain) == "https://a.org/b"


def test_the_bucket_is_nobody_s_business_and_outlives_the_stack() -> None:
    bucket = WHOLE["Resources"]["StoreBucket"]
    assert bucket["DeletionPolicy"] == bucket["UpdateReplacePolicy"] == "Retain"
    properties = STACKS["defaults"].resources("AWS::S3::Bucket")["StoreBucket"]
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    assert properties["BucketEncryption"]
    assert "AbortIncompleteMultipartUpload" in properties["LifecycleConfiguration"]["Rules"][0]
    policies = STACKS["defaults"].resources("AWS::S3::BucketPolicy")
    (statement,) = policies["StoreBucketPolicy"]["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert statement["Resource"] == ["arn:aws:s3:::storebucket", "arn:aws:s3:::storebucket/*"]


def test_a_run_of_the_intake_or_of_the_obi_store_starts_a_publish() -> None:
    rule = STACKS["all"].resources("AWS::Events::Rule")["IntakeRule"]
    keys = rule["EventPattern"]["detail"]["object"]["key"]
    patterns = [re.escape(key["wildcard"]).replace(r"\*", ".*") for key in keys]
    run = layout.run_prefix("20260301T120000Z-0123abcd")
    own = key_of_run(1352481230)
    for last, other in (
        (f"{run}{layout.RUN_SUMMARY}", f"{run}captures-000000.parquet"),
        (f"{own}{COMMIT}", f"{own}{LOG}"),
    ):
        assert any(re.fullmatch(pattern, f"store/{last}") for pattern in patterns)
        assert not any(re.fullmatch(pattern, f"store/{other}") for pattern in patterns)


def test_the_rule_of_the_intake_may_tell_of_what_it_could_not_start() -> None:
    """The rule has no role; a timer goes by its own."""
    assert not STACKS["defaults"].resources("AWS::SQS::QueuePolicy")
    policy = STACKS["all"].resources("AWS::SQS::QueuePolicy")["PublishFailuresPolicy"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "events.amazonaws.com"}
    (target,) = STACKS["all"].resources("AWS::Events::Rule")["IntakeRule"]["Targets"]
    assert statement["Resource"] == target["DeadLetterConfig"]["Arn"]
    (arns,) = statement["Condition"]["ArnEquals"].values()
    assert [arn.rpartition(":")[2] for arn in arns] == ["IntakeRule", "UploadRule"]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("parameter", {n: str(row["Default"]) for n, row in WHOLE["Parameters"].items()}),
        ("option", options(WHOLE)),
    ],
)
def test_every_parameter_and_option_is_described_with_its_default(
    title: str, expected: dict[str, str]
) -> None:
    text = (ROOT / "docs" / "operations" / "deploy.md").read_text("utf-8")
    table = text.partition(f"| {title} |")[2].partition("\n\n")[0]
    described: dict[str, str] = {}
    for names, defaults in re.findall(r"^\| (`.*?) \| (.*?) \|", table, re.MULTILINE):
        for number, name in enumerate(re.findall(r"`(\w+)`", names)):
            each = defaults.split(", ")
            described[name] = each[number if len(each) > 1 else 0].strip("`")
    assert described == {name: value or "empty" for name, value in expected.items()}


def test_the_arguments_that_are_sorted_are_the_protocol_s() -> None:
    code = STACKS["all"].resources("AWS::CloudFront::Function")["SortArguments"]["FunctionCode"]
    (known,) = re.findall(r"KNOWN = (\[.*\]);", code)
    arguments = {name for verb in request.VERBS.values() for name in verb.arguments}
    assert set(json.loads(known.replace("'", '"'))) == {"verb", *arguments}


@every_stack
def test_the_dashboard_is_json(stack: Stack) -> None:
    body = stack.resources("AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"]
    assert len(json.loads(body)["widgets"]) == 5


def test_the_environments_of_sam_set_parameters_that_there_are() -> None:
    environments = tomllib.loads((ROOT / "samconfig.toml").read_text("utf-8"))
    assert set(environments) == {"version", "default", "prod", "local"}
    for name in ("default", "prod", "local"):
        given = environments[name].get("deploy", {}).get("parameters", {})
        for setting in given.get("parameter_overrides", []):
            name, _, value = setting.partition("=")
            row = WHOLE["Parameters"][name]
            assert re.fullmatch(row.get("AllowedPattern", ".*"), value), setting
            # A namespace is for good, and goes before that of the operator's own sheaf.toml.
            assert setting.partition("=")[0] not in ("RepositoryName", "AdminEmail", "Namespace")


# What is packed


BROUGHT = {"ada_url": {"cffi", "pycparser"}, "cryptography": {"cffi", "pycparser"}}
"""What packages need themselves."""
EXTRAS = {"isal"}
"""What is asked for where it is used, and is not packed: isal is zlib, faster."""
RUNTIME = {"boto3", "botocore", "urllib3"}
"""What Lambda's runtime has; a function may bring a newer one."""


@pytest.mark.parametrize(
    ("name", "module"),
    [
        (name, properties["Handler"].rpartition(".")[0])
        for name, properties in STACKS["all"].functions().items()
        # It imports what it never calls; tests/aws/test_ingest.py has what it lacks.
        if name != "IngestFunction"
    ],
)
def test_a_function_is_packed_of_what_it_imports(
    package: ModuleType, name: str, module: str
) -> None:
    modules, needed = [module], set()
    seen: set[str] = set()
    while modules:
        one = modules.pop()
        path = ROOT / one.replace(".", "/")
        path = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
        if one in seen or not path.exists():
            continue
        seen.add(one)
        needed |= third_parties(path)
        modules += [n for n in imports(path) if n.startswith(("builder.", "functions."))]
    contents = package.FUNCTIONS[name]
    brought = set().union(*(found for by, found in BROUGHT.items() if by in needed))
    missing = needed - EXTRAS - (RUNTIME - set(contents.packages)) | brought
    locked = {package.replace("_", "-") for package in missing}
    assert set(contents.packages) == locked
    files = {f"{name.replace('.', '/')}.py" for name in seen}
    files |= {parent.as_posix() for file in files for parent in Path(file).parents}
    left_out = [*contents.left_out, "builder/commands"]
    assert not [file for file in files if any(fnmatch(file, pattern) for pattern in left_out)]


def test_the_functions_of_the_template_are_those_that_are_packed(package: ModuleType) -> None:
    assert set(STACKS["all"].functions()) == set(package.FUNCTIONS)
    architectures = WHOLE["Parameters"]["Architecture"]["AllowedValues"]
    for architecture in architectures:
        makefile = (ROOT / "infra" / architecture / "Makefile").read_text("utf-8")
        assert f"ARCHITECTURE := {architecture}\n" in makefile
    made = (ROOT / "infra" / "package.mk").read_text("utf-8")
    assert all(f"build-{name}" in made for name in package.FUNCTIONS)


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ('["Memory=2048", "Ingest=yes"]', "Options=Memory=2048"),
        (
            """'Memory="2048" PublishSchedule="rate(1 day)" Options="Burst=9" Ingest="no"'""",
            "Options=Burst=9;Memory=2048;PublishSchedule=rate(1 day)",
        ),
        ('["Ingest=yes", "Options=Memory=2048"]', None),
    ],
)
def test_a_parameter_that_became_an_option_is_refused_with_the_line_to_write(
    package: ModuleType, tmp_path: Path, overrides: str, line: str | None
) -> None:
    """As SAM itself would drop it, and say nothing."""
    assert set(options(WHOLE)) == package.OPTIONS
    path = tmp_path / "samconfig.toml"
    path.write_text(
        f"version = 0.1\n[default.deploy.parameters]\nparameter_overrides = {overrides}"
    )
    if line is None:
        package._refuse_parameters_of_before(path)
        return
    with pytest.raises(ValueError, match=re.escape(f'"{line}"')):
        package._refuse_parameters_of_before(path)


def test_a_package_that_is_not_locked_is_named(package: ModuleType) -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert package.locked(lock, ["duckdb"]).startswith("duckdb==")
    assert "--hash=sha256:" in package.locked(lock, ["duckdb"])
    assert "jinja2" not in package.locked(lock, ["duckdb"]).partition("# via")[0]
    with pytest.raises(LookupError, match="has no nonesuch"):
        package.locked(lock, ["duckdb", "nonesuch"])


@pytest.mark.parametrize(
    ("toml", "packed"),
    [
        ("", ["sheaf.toml"]),
        ('[formats]\ntemplates = "own/formats"\n', ["sheaf.toml", "own/formats"]),
    ],
)
def test_the_operator_s_own_files_are_packed(
    package: ModuleType, tmp_path: Path, toml: str, packed: list[str]
) -> None:
    (tmp_path / "own" / "formats").mkdir(parents=True)
    assert not list(package._configuration(tmp_path))
    (tmp_path / "sheaf.toml").write_text(toml, "utf-8")
    assert [path.as_posix() for path in package._configuration(tmp_path)] == packed


def test_templates_are_packed_by_the_name_that_the_function_looks_for(
    package: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "formats-2").mkdir()
    (tmp_path / "formats").symlink_to("formats-2")
    (tmp_path / "sheaf.toml").write_text('[formats]\ntemplates = "formats"\n', "utf-8")
    assert Path("formats") in package._configuration(tmp_path)


@pytest.mark.parametrize(
    "own", ["nowhere", "../elsewhere", "{here}/own", "own/../own", "../here/own", "."]
)
def test_templates_that_would_be_missing_on_aws_are_refused(
    package: ModuleType, tmp_path: Path, own: str
) -> None:
    here = tmp_path / "here"
    (here / "own").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    own = own.format(here=here)
    (here / "sheaf.toml").write_text(f'[formats]\ntemplates = "{own}"\n', "utf-8")
    with pytest.raises(ValueError, match=re.escape(own)):
        list(package._configuration(here))


def test_keys_that_the_template_names_are_described() -> None:
    named = set(re.findall(r"SHEAF_[A-Z_]+", TEXT))
    assert named <= {"SHEAF_" + key.name.upper().replace(".", "_") for key in keys.KEYS}
