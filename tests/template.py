"""The template of infra/ as plain values, and what CloudFormation would make of its functions."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "infra" / "template.yaml"
PARTS = [ROOT / "infra" / f"{name}.yaml" for name in ("content", "filesets", "ingest")]

PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/sheaf/0f1e-2d3c",
    "AWS::StackName": "sheaf",
    "AWS::URLSuffix": "amazonaws.com",
}
_NOTHING = object()
_NAME = re.compile(r"\$\{([A-Za-z0-9:.]+)\}")


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short tags as its long functions."""


def _function(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.SequenceNode):
        value: Any = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_scalar(node)  # type: ignore[arg-type]
    if suffix == "GetAtt":
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _function)


def load(text: str) -> dict[str, Any]:
    """Return a template's text as values, every function in its long form."""
    found: dict[str, Any] = yaml.load(text, _Loader)
    return found


def options(template: Mapping[str, Any]) -> dict[str, str]:
    """Return what may stand in Options, with the defaults, which stand behind it."""
    (rows,) = set(re.findall(r'{"Ref": "Options"}, ";(.*?)"', json.dumps(template["Conditions"])))
    return dict(row.split("=", 1) for row in rows.rstrip(";").split(";"))


def packed(template: Mapping[str, Any], settings: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters, with what is none of them in Options."""
    parameters = {name: value for name, value in settings.items() if name in template["Parameters"]}
    rest = [f"{name}={value}" for name, value in settings.items() if name not in parameters]
    return {**parameters, "Options": ";".join(rest)} if rest else parameters


class Stack:
    """A template with parameters, as CloudFormation would resolve it; names stand for resources.

    Parameters that the template has as options are given as such. Its parts are stacks in it.
    """

    def __init__(self, template: Mapping[str, Any], **parameters: str) -> None:
        self.template = template
        parameters = packed(template, parameters)
        self.parameters = {
            name: str(parameters.get(name, row.get("Default", "")))
            for name, row in template["Parameters"].items()
        }

    def resources(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the properties of the resources of a type that there are, by logical id."""
        found = {
            name: self.resolved(resource["Properties"])
            for name, resource in self.template["Resources"].items()
            if resource["Type"] == kind and self._exists(resource)
        }
        for name in self._parts():
            found |= self.part(name).resources(kind)
        return found

    def functions(self) -> dict[str, dict[str, Any]]:
        """Return the properties of the functions, by logical id."""
        return self.resources("AWS::Serverless::Function") | self.resources("AWS::Lambda::Function")

    @property
    def options(self) -> dict[str, str]:
        """Return the values of the options, which are no parameters."""
        rows = [row for row in self.parameters["Options"].split(";") if row]
        return options(self.template) | dict(row.split("=", 1) for row in rows)

    def part(self, name: str) -> "Stack":
        """Return a stack that is a part of this one."""
        properties = self.template["Resources"][name]["Properties"]
        template = load((TEMPLATE.parent / properties["TemplateURL"]).read_text("utf-8"))
        return Stack(template, **self.resolved(properties["Parameters"]))

    def _parts(self) -> list[str]:
        return [
            name
            for name, resource in self.template["Resources"].items()
            if resource["Type"] == "AWS::CloudFormation::Stack" and self._exists(resource)
        ]

    def resolved(self, value: Any) -> Any:
        """Return a value without functions; what has no value is left out."""
        if isinstance(value, list):
            found = [self.resolved(one) for one in value]
            return [one for one in found if one is not _NOTHING]
        if not isinstance(value, dict):
            return value
        if len(value) == 1 and (name := next(iter(value))) in self._functions:
            return self._functions[name](self, value[name])
        found = {name: self.resolved(one) for name, one in value.items()}
        return {name: one for name, one in found.items() if one is not _NOTHING}

    def _exists(self, resource: Mapping[str, Any]) -> bool:
        return "Condition" not in resource or self._holds(resource["Condition"])

    def _holds(self, condition: Any) -> bool:
        if isinstance(condition, str):
            return self._holds(self.template["Conditions"][condition])
        ((name, given),) = condition.items()
        if name == "Condition":
            return self._holds(given)
        if name == "Fn::Not":
            return not self._holds(given[0])
        if name == "Fn::And":
            return all(map(self._holds, given))
        if name == "Fn::Or":
            return any(map(self._holds, given))
        if name == "Fn::Contains":
            return str(given[1]) in str(self.resolved(given[0])).split(",")
        assert name == "Fn::Equals"
        one, other = map(self.resolved, given)
        return str(one) == str(other)

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NOTHING
        return {**PSEUDO, **self.parameters}.get(name, name.lower())

    def _attribute(self, given: list[str]) -> str:
        name, attribute = given
        if attribute.startswith("Outputs."):
            part = self.part(name)
            return str(part.resolved(part.template["Outputs"][attribute[8:]]["Value"]))
        kind = self.template["Resources"][name]["Type"].split("::")[1].lower()
        if attribute.endswith("Arn") or attribute.endswith("ARN"):
            return {
                "s3": f"arn:aws:s3:::{name.lower()}",
                "logs": f"arn:aws:logs:eu-central-1:123456789012:log-group:{name}:*",
                "sqs": f"arn:aws:sqs:eu-central-1:123456789012:{name}",
                "iam": f"arn:aws:iam::123456789012:role/{name}",
                "serverless": f"arn:aws:lambda:eu-central-1:123456789012:function:{name}",
                "lambda": f"arn:aws:lambda:eu-central-1:123456789012:function:{name}",
            }.get(kind, f"arn:aws:{kind}:eu-central-1:123456789012:{name}")
        return f"{name.lower()}.{attribute.lower()}"

    def _text(self, given: Any) -> str:
        text, own = (given, {}) if isinstance(given, str) else given
        own = {name: self.resolved(one) for name, one in own.items()}

        def value(match: re.Match[str]) -> str:
            name, _, attribute = match[1].partition(".")
            if name in own:
                return str(own[name])
            return str(self._attribute([name, attribute]) if attribute else self._ref(name))

        return _NAME.sub(value, text)

    def _choice(self, given: list[Any]) -> Any:
        return self.resolved(given[1] if self._holds(given[0]) else given[2])

    def _joined(self, given: list[Any]) -> str:
        separator, values = map(self.resolved, given)
        return str(separator).join(map(str, values))

    def _piece(self, given: list[Any]) -> str:
        index, values = map(self.resolved, given)
        return str(values[index])

    def _split(self, given: list[Any]) -> list[str]:
        separator, text = map(self.resolved, given)
        return str(text).split(separator)

    def _found(self, given: list[Any]) -> Any:
        table, *names = given
        found = self.template["Mappings"][table]
        for name in names:
            found = found[self.resolved(name)]
        return found

    _functions: ClassVar = {
        "Fn::FindInMap": _found,
        "Ref": _ref,
        "Fn::GetAtt": _attribute,
        "Fn::Sub": _text,
        "Fn::If": _choice,
        "Fn::Join": _joined,
        "Fn::Select": _piece,
        "Fn::Split": _split,
    }


def statements(stack: Stack) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the role and the statement of everything that the stack's roles may do."""
    for role, properties in stack.resources("AWS::IAM::Role").items():
        for policy in properties["Policies"]:
            yield from ((role, one) for one in policy["PolicyDocument"]["Statement"])


def listed(value: str | list[str]) -> list[str]:
    """Return a policy's value as a list, which may be a text alone."""
    return [value] if isinstance(value, str) else value
