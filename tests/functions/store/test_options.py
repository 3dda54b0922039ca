"""How the bucket, the endpoint and the region come together."""

from typing import Any

import pytest

from functions.config import configuration
from functions.snapshot import layout
from functions.snapshot.errors import ConfigurationError, StoreError
from functions.snapshot.layout import StoreAddress
from functions.store.connection import BucketConnection, options_of

KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "HOME": "/nowhere"}


def options(bucket: str = "bucket", environment: dict[str, str] | None = None, **how: Any) -> Any:
    return options_of(
        StoreAddress(bucket, "x"), BucketConnection(**how), {**KEYS, **(environment or {})}
    )


def test_aws_is_asked_by_host_name_unless_the_bucket_has_a_dot() -> None:
    assert options()["virtual_hosted_style_request"]
    assert "endpoint" not in options()
    assert not options("a.bucket")["virtual_hosted_style_request"]


def test_another_server_is_asked_by_path_unless_told_otherwise() -> None:
    found = options(endpoint="https://s3.example.org")
    assert found["endpoint"] == "https://s3.example.org"
    assert not found["virtual_hosted_style_request"]
    found = options(endpoint="https://s3.example.org", addressing="virtual")
    assert found["endpoint"] == "https://bucket.s3.example.org"


def test_the_configuration_comes_before_the_environment() -> None:
    environment = {"AWS_ENDPOINT_URL": "http://other/", "AWS_REGION": "eu-west-1"}
    found = options(environment=environment)
    assert (found["endpoint"], found["region"]) == ("http://other", "eu-west-1")
    found = options(environment=environment, endpoint="http://own", region="eu-north-1")
    assert (found["endpoint"], found["region"]) == ("http://own", "eu-north-1")


@pytest.mark.parametrize(
    "value",
    [
        "localhost:9000",
        "foo",
        "https//x",
        "ftp://u:hidden@h/",
        "http://u:hidden@h",
        "http://h:bad",
        "http://h:99999",
        "http://[::1",
        "http://[1.2.3.4]",
        "http://256.1.1.1",
        "http://a b",
        "http://x/\n",
        "http://x/?sig=hidden",
        "http://x/path",
        "http://",
    ],
)
def test_an_endpoint_that_cannot_be_is_told_by_its_variable(value: str) -> None:
    with pytest.raises(StoreError, match=r"^AWS_ENDPOINT_URL cannot be used, expected") as caught:
        options(environment={"AWS_ENDPOINT_URL": value})
    assert "hidden" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=r"SHEAF_STORE_ENDPOINT"):
        configuration.parse("", {"SHEAF_STORE_ENDPOINT": value})


@pytest.mark.parametrize(
    "value", ["http://localhost:9000", "https://[::1]:443/", "http://a_b", "http://127.0.0.1"]
)
def test_endpoints(value: str) -> None:
    assert options(environment={"AWS_ENDPOINT_URL": value})["endpoint"] == value.rstrip("/")


@pytest.mark.parametrize(
    "name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"]
)
@pytest.mark.parametrize("value", ["hidden\n", "hid den", "hiddén", "\thidden"])
def test_what_cannot_sign_is_told_by_its_variable(name: str, value: str) -> None:
    with pytest.raises(StoreError, match=f"^{name} has a space") as caught:
        options(environment={name: value})
    assert "hid" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_half_of_the_keys_is_told(given: str, wanted: str) -> None:
    with pytest.raises(StoreError, match=f"{given} is set without {wanted}"):
        options(environment={wanted: ""})


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [
        ("s3://bucket", "bucket", ""),
        ("s3://bucket/", "bucket", ""),
        ("s3://my.bucket-1/a/b//", "my.bucket-1", "a/b"),
        ("s3://bucket/é x", "bucket", "é x"),
    ],
)
def test_addresses(text: str, bucket: str, prefix: str) -> None:
    assert layout.parse_address(text) == StoreAddress(bucket, prefix)
    assert layout.parse_address(str(layout.parse_address(text))) == StoreAddress(bucket, prefix)


@pytest.mark.parametrize(
    "text",
    [
        "s3:/bucket",
        "S3://bucket",
        "s3://a",
        "s3://bu cket/x",
        "s3://bucket//x",
        "s3://bucket/a//b",
        "s3://bucket/./x",
        "s3://bucket/x#y",
        "s3://bucket/a\nb",
        "s3:///x",
    ],
)
def test_what_is_no_address(text: str) -> None:
    assert not layout.is_address(text)
    with pytest.raises(ValueError, match=r"expected s3://|is no"):
        layout.parse_address(text)
