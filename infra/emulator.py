"""Runs ministack, an emulator of AWS, for the stack of template.yaml; `make emulator` does.

    .venv-aws/ministack/bin/python infra/emulator.py [PYTHON]

PYTHON is what functions run on, else this one. The variables are ministack's own: it listens at
GATEWAY_PORT of BIND_HOST, enforces roles with AUTH, and runs functions as processes.

Of functions in conditions ministack knows Ref alone. CloudFormation knows Join, Select and Split as
well, by which the conditions of template.yaml read Options; here they are resolved beforehand. It
also makes a number of the text that a parameter is, as here of what a queue's function may run, and
knows the attributes of what an update leaves alone in a nested stack. Its gateway tells functions
by which scheme it was asked, here http: so base URLs are those of the stack's outputs.
"""

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

DEFAULTS = {
    "AUTH": "true",
    "BIND_HOST": "127.0.0.1",
    "GATEWAY_PORT": "4566",
    "LAMBDA_EXECUTOR": "local",
}
_TEXTS = {"Fn::Join", "Fn::Select"}


def resolve_first(engine: Any, modules: Mapping[str, Any]) -> None:
    """Have ministack's `engine` resolve the texts of conditions, wherever `modules` ask for it."""
    evaluate = engine._evaluate_conditions

    def resolved(value: Any, template: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
        if isinstance(value, list):
            return [resolved(each, template, params) for each in value]
        if not isinstance(value, dict):
            return value
        if _TEXTS & set(value):
            return engine._resolve_refs(value, {}, params, {}, template.get("Mappings", {}), "", "")
        return {name: resolved(each, template, params) for name, each in value.items()}

    def conditions(template: Mapping[str, Any], params: Mapping[str, Any]) -> Any:
        plain = resolved(template.get("Conditions", {}), template, params)
        return evaluate({**template, "Conditions": plain}, params)

    for name, module in modules.items():
        if name.startswith("ministack.") and hasattr(module, "_evaluate_conditions"):
            module._evaluate_conditions = conditions


def count_in_numbers(handlers: dict[str, Any]) -> None:
    """Have ministack's `handlers` of a queue's function take the text of a number as such."""

    def numbered(handler: Callable[..., Any]) -> Callable[..., Any]:
        def handle(*arguments: Any) -> Any:
            bodies = (value for value in arguments if isinstance(value, dict))
            for scaling in (body.get("ScalingConfig") for body in bodies):
                if scaling:
                    scaling["MaximumConcurrency"] = int(scaling["MaximumConcurrency"])
            return handler(*arguments)

        return handle

    for step in ("create", "update"):
        handlers[step] = numbered(handlers[step])


def keep_attributes(provisioners: Any, stacks: Any) -> None:
    """Have ministack's nested `stacks` keep the attributes of what does not change."""
    update = provisioners._update_resource

    def updated(
        kind: str, physical_id: str, old: Any, new: Any, stack: str, logical_id: str, **known: Any
    ) -> Any:
        row = stacks[stack].get("_resources", {}).get(logical_id, {})
        known = {"old_attrs": row.get("Attributes"), **known}
        return update(kind, physical_id, old, new, stack, logical_id, **known)

    provisioners._update_resource = updated


def tell_scheme(gateway: Any) -> None:
    """Have ministack's `gateway` tell functions that it was asked by http, whatever clients say."""
    invoke = gateway._invoke_lambda_proxy

    def answer(*arguments: Any, **others: Any) -> Any:
        called = inspect.signature(invoke).bind(*arguments, **others)
        called.arguments["headers"] = {**called.arguments["headers"], "x-forwarded-proto": "http"}
        return invoke(*called.args, **called.kwargs)

    gateway._invoke_lambda_proxy = answer


if __name__ == "__main__":
    for variable, value in DEFAULTS.items():
        os.environ.setdefault(variable, value)
    from ministack.app import main
    from ministack.services import apigateway
    from ministack.services.cloudformation import _stacks, engine, provisioners

    resolve_first(engine, dict(sys.modules))
    keep_attributes(provisioners, _stacks)
    count_in_numbers(provisioners._RESOURCE_HANDLERS["AWS::Lambda::EventSourceMapping"])
    tell_scheme(apigateway)
    if len(sys.argv) > 1:
        sys.executable = sys.argv.pop()
    main()
