"""Read YAML as kubectl does, with the line of every field.

kubectl converts YAML 1.1 to JSON (sigs.k8s.io/yaml over go-yaml 2): numbers and booleans are resolved as there.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from accelbench.api.run import BenchmarkRun
from accelbench.problem import Problem

MAXIMUM_NODES = 2_000_000
"""Maximum number of values in a document; more than any list of results that an API server returns at once."""


@dataclass(frozen=True)
class LocatedProblem(Problem):
    """Describe a problem at a line of the file, from 1; without one it is about the whole file."""

    line: int | None = None

    def __str__(self) -> str:
        """Return `line 7: path: message`."""
        return f"line {self.line}: {super().__str__()}" if self.line else super().__str__()


class InvalidManifestError(ValueError):
    """Report a manifest that cannot be run: its `source` and `problems`.

    `runs` are the runs in it that can be read anyway, for further checks.
    """

    def __init__(self, source: str, problems: tuple[Problem, ...], runs: tuple[BenchmarkRun, ...] = ()) -> None:
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))
        self.source = source
        self.problems = problems
        self.runs = runs


@dataclass(frozen=True)
class YamlDocument:
    """Hold one document of a file: its content, and the node that has its lines."""

    content: dict[str, Any]
    node: yaml.Node

    def line(self, path: str) -> int:
        """Return the line of the field at `path`, or of the nearest field that contains it."""
        return _line_of(self.node, re.findall(r"[^.\[\]]+", path))


def read_documents(text: str, source: str) -> tuple[YamlDocument, ...]:
    """Return the non-empty documents of a file; raises InvalidManifestError with the line of invalid YAML."""
    try:
        documents = tuple(_read(_Loader(text)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = LocatedProblem("", f"malformed YAML: {error.problem}", mark.line + 1 if mark else None)
        raise InvalidManifestError(source, (problem,)) from error
    except RecursionError as error:
        raise InvalidManifestError(source, (Problem("", "nested too deeply"),)) from error
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise InvalidManifestError(source, (Problem("", f"malformed YAML: {error}"),)) from error
    for document in documents:
        if not isinstance(document.content, dict):
            problem = LocatedProblem("", "a manifest is a map that starts with apiVersion", document.line(""))
            raise InvalidManifestError(source, (problem,))
    return documents


def _read(loader: "_Loader") -> Iterator[YamlDocument]:
    """Yield the loader's documents except empty ones; raises ValueError if aliases expand to too many values."""
    while loader.check_node():
        node = loader.get_node()
        if node is not None and _expanded_size(node, {}) > MAXIMUM_NODES:
            raise ValueError(f"its aliases expand to more than {MAXIMUM_NODES:,} values")
        if node is not None and (content := loader.construct_document(node)) is not None:
            # JSON turns keys into strings, and refuses cycles and values that it cannot represent.
            yield YamlDocument(json.loads(json.dumps(content)), node)


def _expanded_size(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the values of a node with its aliases expanded; a cyclic node is refused later, by JSON."""
    if id(node) not in known:
        known[id(node)] = 1
        inside = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
        parts = inside if isinstance(node, yaml.CollectionNode) else ()
        known[id(node)] = 1 + sum(_expanded_size(part, known) for part in parts)
    return known[id(node)]


def _line_of(node: yaml.Node, keys: list[str]) -> int:
    """Return the line of the field to which `keys` lead from the node, or of the last node on the way that exists."""
    if keys and isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == keys[0]:
                return _line_of(value, keys[1:]) if len(keys) > 1 else int(key.start_mark.line) + 1
    if keys and isinstance(node, yaml.SequenceNode) and keys[0].isdecimal() and int(keys[0]) < len(node.value):
        return _line_of(node.value[int(keys[0])], keys[1:])
    return int(node.start_mark.line) + 1


class _Loader(yaml.SafeLoader):
    """Load YAML with JSON's types; refuse a duplicate key, which kubectl drops silently."""

    yaml_implicit_resolvers = {
        first: [pair for pair in resolvers if not pair[0].endswith((":int", ":float", ":bool", ":timestamp", ":value"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        """Refuse a mapping that has the same key twice."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
                raise yaml.composer.ComposerError(None, None, f'"{key.value}" is given twice', key.start_mark)
            seen.add((key.tag, str(key.value)))
        return node

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        return _integer(node.value)

    def construct_number(self, node: yaml.ScalarNode) -> float | int:
        # JSON has one kind of number: 5.0 and 1e3 are integers to the API server.
        number = float(node.value.replace("_", ""))
        return int(number) if number.is_integer() else number


def _integer(text: str) -> int:
    """Parse an integer of YAML 1.1: decimal, 0x, 0b, 0o, or octal with a leading 0; `_` separates digits."""
    digits = text.replace("_", "")
    sign, digits = (digits[0], digits[1:]) if digits[0] in "+-" else ("", digits)
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return int(sign + digits, 8) if octal else int(sign + digits, 0)


for _tag, _pattern, _first in (
    ("bool", r"y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF", "yYtToOnNfF"),
    ("int", r"[-+]?(0[xX][0-9a-fA-F][0-9a-fA-F_]*|0[oO]?[0-7][0-7_]*|0[bB][01][01_]*|0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
