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
    """Describe a problem and its line in the file, from 1. Without a line, it is about the whole file."""

    line: int | None = None

    def __str__(self) -> str:
        """Return `line 7: path: message`; without a line, `path: message`."""
        text = super().__str__()
        return f"line {self.line}: {text}" if self.line else text


class InvalidManifestError(ValueError):
    """Report a manifest that cannot be run: its `source` and `problems`.

    `runs` are the runs in it that can be read anyway, for further checks.
    """

    def __init__(self, source: str, problems: tuple[Problem, ...], runs: tuple[BenchmarkRun, ...] = ()) -> None:
        """Store the problems of the file `source`, and the runs that are readable despite them."""
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))
        self.source = source
        self.problems = problems
        self.runs = runs


@dataclass(frozen=True)
class YamlDocument:
    """Describe one document of a file: its content, and the YAML node that has the line of each field."""

    content: dict[str, Any]
    node: yaml.Node

    def line(self, path: str) -> int:
        """Return the line of the field at `path` or, if it is missing, of its nearest ancestor in the document."""
        # `spec.variants[1].use` has the keys spec, variants, 1 and use.
        keys = re.findall(r"[^.\[\]]+", path)
        return _find_line(self.node, keys)


def read_documents(text: str, source: str) -> tuple[YamlDocument, ...]:
    """Return the documents of a file, except for empty ones; raises InvalidManifestError."""
    try:
        documents = tuple(_load_documents(_Loader(text)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        problem = LocatedProblem("", f"malformed YAML: {error.problem}", line)
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


def _load_documents(loader: "_Loader") -> Iterator[YamlDocument]:
    """Yield the loader's documents, except for empty ones; raises ValueError if aliases make one too large."""
    while loader.check_node():
        node = loader.get_node()
        if node is None:  # for the type checker: `check_node` has seen the beginning of a document
            continue
        if _count_values(node, {}) > MAXIMUM_NODES:
            raise ValueError(f"its aliases expand to more than {MAXIMUM_NODES:,} values")
        content = loader.construct_document(node)
        if content is not None:
            # JSON turns keys into strings, and refuses cycles and values that it cannot represent.
            yield YamlDocument(json.loads(json.dumps(content)), node)


def _count_values(node: yaml.Node, counts: dict[int, int]) -> int:
    """Return how many values a node has after its aliases are expanded: itself, and all keys and values in it.

    `counts` caches the results by the node's `id`; a caller passes an empty dict.
    """
    if id(node) in counts:
        return counts[id(node)]
    # If the node contains itself, this entry ends the recursion; JSON refuses such a node later.
    counts[id(node)] = 1
    children: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            children += [key, value]
    elif isinstance(node, yaml.SequenceNode):
        children = node.value
    counts[id(node)] = 1 + sum(_count_values(child, counts) for child in children)
    return counts[id(node)]


def _find_line(node: yaml.Node, keys: list[str]) -> int:
    """Return the line, counted from 1, of the field that `keys` lead to from `node`.

    If the field is missing, return the line of its nearest ancestor.
    """
    node_line = int(node.start_mark.line) + 1
    if not keys:
        return node_line
    first_key, *other_keys = keys
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value != first_key:
                continue
            if other_keys:
                return _find_line(value, other_keys)
            # The field starts at its key: its value may start on a later line.
            return int(key.start_mark.line) + 1
    if isinstance(node, yaml.SequenceNode) and first_key.isdecimal():
        index = int(first_key)
        if index < len(node.value):
            return _find_line(node.value[index], other_keys)
    return node_line


class _Loader(yaml.SafeLoader):
    """Load YAML with JSON's types; refuse a duplicate key, which kubectl drops silently."""

    # Without PyYAML's patterns for the types of scalars that go-yaml recognises differently; those are added below.
    yaml_implicit_resolvers = {
        first: [pair for pair in resolvers if not pair[0].endswith((":int", ":float", ":bool", ":timestamp", ":value"))]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        """Return the next mapping; raises ComposerError if a key occurs twice."""
        node = super().compose_mapping_node(anchor)
        previous_keys = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):  # a list or map as a key is refused later
                continue
            type_and_text = (key.tag, key.value)
            if type_and_text in previous_keys:
                message = f'"{key.value}" is given twice'
                raise yaml.composer.ComposerError(problem=message, problem_mark=key.start_mark)
            previous_keys.add(type_and_text)
        return node

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        return _parse_integer(node.value)

    def construct_number(self, node: yaml.ScalarNode) -> float | int:
        """Return a YAML float as the API server reads it: 5.0 and 1e3 are integers, as JSON has one type of number."""
        number = float(node.value.replace("_", ""))
        return int(number) if number.is_integer() else number


def _parse_integer(text: str) -> int:
    """Parse an integer of YAML 1.1: decimal, 0x, 0b, 0o, or octal with a leading 0, and with `_` between digits."""
    text = text.replace("_", "")
    unsigned = text.lstrip("+-")
    is_octal = re.fullmatch(r"0[0-9]+", unsigned) is not None
    # Base 0 detects decimal, 0x, 0b and 0o, but refuses digits after a leading 0, which are octal in YAML 1.1.
    return int(text, 8 if is_octal else 0)


for _tag, _pattern, _first_characters in (
    ("bool", r"y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF", "yYtToOnNfF"),
    ("int", r"[-+]?(0[xX][0-9a-fA-F][0-9a-fA-F_]*|0[oO]?[0-7][0-7_]*|0[bB][01][01_]*|0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first_characters)
    )
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_integer)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}
