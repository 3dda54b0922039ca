"""Deletes a throw-away stack and all that would outlive it; `infra/prove-account.sh` ends with it.

    python -m tests.aws.account STACK

It says what it deletes, and ends with 1 where something stays.
"""

import sys
from collections.abc import Callable
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError, WaiterError

PREFIX = "sheaf-proof-"


def deleted(stack: str, connect: Callable[[str], Any] = boto3.client) -> bool:
    """Delete the stack, its buckets with all versions, and its logs; True where all went.

    Raises ValueError for a stack that no proof has made.
    """
    if not stack.startswith(PREFIX):
        raise ValueError(f"{stack} is no stack of a proof: its name does not begin with {PREFIX}")
    succeeded = [
        attempt(f"stack {stack}", lambda: _delete_stack(connect("cloudformation"), stack)),
        *(
            attempt(f"bucket {name}", lambda name=name: _delete_bucket(connect("s3"), name))
            for name in _names(connect("s3").list_buckets()["Buckets"], "Name", stack)
        ),
        *(
            attempt(
                f"log {name}", lambda name=name: connect("logs").delete_log_group(logGroupName=name)
            )
            for prefix in (stack, f"/aws/vendedlogs/{stack}")
            for name in _names(
                connect("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"],
                "logGroupName",
                prefix,
            )
        ),
    ]
    return all(succeeded)


def attempt(what: str, delete: Callable[[], object]) -> bool:
    """Delete something, say so, and return whether it went."""
    try:
        delete()
    except (BotoCoreError, ClientError, WaiterError) as error:
        print(f"{what} stays: {error}", file=sys.stderr)
        return False
    print(f"deleted: {what}", file=sys.stderr)
    return True


def _names(rows: list[dict[str, Any]], key: str, prefix: str) -> list[str]:
    return [row[key] for row in rows if row[key].startswith(prefix)]


def _delete_stack(client: Any, stack: str) -> None:
    client.delete_stack(StackName=stack)
    client.get_waiter("stack_delete_complete").wait(StackName=stack)


def _delete_bucket(client: Any, bucket: str) -> None:
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        rows = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        keys = [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in rows]
        if keys:
            client.delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
    client.delete_bucket(Bucket=bucket)


if __name__ == "__main__":
    try:
        sys.exit(0 if deleted(sys.argv[1]) else 1)
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"{sys.argv[1]} is not deleted: {error}")
