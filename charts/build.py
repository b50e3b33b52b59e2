"""Write the generated parts of the chart: its README's table from values.yaml, its version from the package.

`--check` changes nothing and fails if a file is out of date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from accelbench import __version__
from accelbench.report.markdown import RawMarkdown, markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterator

CHART = Path(__file__).parent / "accelbench"
BEGIN, END = "<!-- values -->", "<!-- end of values -->"
KEY = re.compile(r"^(?P<indent> *)(?P<name>\w+):")
UNDIVIDED = {"resources", "affinity", "instanceSelector"}
"""Values with a single row in the table, although the schema declares their fields."""


@dataclass(frozen=True)
class Value:
    """Describe one value as a user sets it."""

    path: str
    default: str
    meaning: str


def main(arguments: list[str] | None = None) -> int:
    """Write the generated parts or, with `--check`, compare them with the files; return the exit status."""
    parser = argparse.ArgumentParser(description="Generate the chart's README and version.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, render in {"README.md": readme, "Chart.yaml": chart}.items():
        file = CHART / name
        stored_text = file.read_text()
        text = render(stored_text)
        if text == stored_text:
            continue
        stale.append(f"charts/accelbench/{name}")
        if not check:
            file.write_text(text)
    if check and stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}: python charts/build.py\n")
    return int(check and bool(stale))


def readme(text: str) -> str:
    """Return the README with a new table of values between the comments `BEGIN` and `END`."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    rows = [
        (_code(value.path), value.default and _code(value.default), RawMarkdown(value.meaning.replace("|", "\\|")))
        for value in values()
        if value.default or value.meaning
    ]
    return f"{before}{BEGIN}\n{markdown_table(('value', 'default', 'meaning'), rows, right=set())}\n{END}{after}"


def _code(text: str) -> RawMarkdown:
    """Format as Markdown code, with bars escaped for a table."""
    return RawMarkdown("`" + text.replace("|", "\\|") + "`")


def chart(text: str) -> str:
    """Return Chart.yaml with the package's version as the versions of the chart and of the operator."""
    return re.sub(r"^(version|appVersion): .*$", rf"\1: {__version__}", text, flags=re.MULTILINE)


def values() -> Iterator[Value]:
    """Yield every value of values.yaml, with the comment before it as its meaning.

    A section, such as `metrics`, has no default; its fields follow as values of their own.
    """
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    comment: list[str] = []
    parents: list[str] = []
    value_prefix: str | None = None  # path, with a dot, of the last value that is not a section
    for line in (CHART / "values.yaml").read_text().splitlines():
        key = KEY.match(line)
        if line.lstrip().startswith("#"):
            comment.append(line.lstrip().removeprefix("#"))
            continue
        if key is None:
            comment = []
            continue
        parents = [*parents[: len(key["indent"]) // 2], key["name"]]
        path = ".".join(parents)
        if value_prefix and path.startswith(value_prefix):
            continue
        is_section = _is_section(schema, parents)
        value_prefix = None if is_section else f"{path}."
        default = "" if is_section else _compact(_at(defaults, parents))
        yield Value(path, default, _meaning(comment))
        comment = []


def _is_section(schema: dict[str, Any], path: list[str]) -> bool:
    """Return True if the value at `path` is an object whose fields have rows of their own in the table."""
    node = schema
    for name in path:
        node = node["properties"][name]
        if "$ref" in node:
            node = schema["definitions"][node["$ref"].rpartition("/")[2]]
    return "properties" in node and node["type"] == "object" and path[-1] not in UNDIVIDED


def _at(values: dict[str, Any], path: list[str]) -> Any:
    """Return the value at `path` in nested dictionaries."""
    for name in path:
        values = values[name]
    return values


def _compact(default: Any) -> str:
    """Return a default as JSON on one line."""
    return json.dumps(default, ensure_ascii=False)


def _meaning(comment: list[str]) -> str:
    """Return a comment as one line, without its indented examples."""
    unindented = [line.strip() for line in comment if not line.startswith("   ")]
    text = " ".join(line for line in unindented if line != "Without a preset:")
    return re.sub(r":$", ": values.yaml shows how.", text)


if __name__ == "__main__":
    sys.exit(main())
