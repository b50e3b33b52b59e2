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
WHOLE = {"resources", "affinity", "instanceSelector"}
"""Values documented as one, although the schema has their fields."""


@dataclass(frozen=True)
class Value:
    """Describe one value as a user sets it."""

    path: str
    default: str
    meaning: str


def main(arguments: list[str] | None = None) -> int:
    """Write or check; return the exit status."""
    parser = argparse.ArgumentParser(description="Generate the chart's README and version.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a file is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, render in {"README.md": readme, "Chart.yaml": chart}.items():
        file = CHART / name
        before = file.read_text()
        if (text := render(before)) == before:
            continue
        stale.append(f"charts/accelbench/{name}")
        if not check:
            file.write_text(text)
    if check and stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}: python charts/build.py\n")
    return int(check and bool(stale))


def readme(text: str) -> str:
    """Return the README with the table of values between its marks."""
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
    """Return Chart.yaml with the package's version, for the chart and for what it installs."""
    return re.sub(r"^(version|appVersion): .*$", rf"\1: {__version__}", text, flags=re.MULTILINE)


def values() -> Iterator[Value]:
    """Return every value of values.yaml with the comment before it."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    comment: list[str] = []
    parents: list[str] = []
    within: str | None = None
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
        if within and path.startswith(within):
            continue
        section = _is_section(schema, parents)
        within = None if section else f"{path}."
        default = "" if section else _compact(_at(defaults, parents))
        yield Value(path, default, _meaning(comment))
        comment = []


def _is_section(schema: dict[str, Any], path: list[str]) -> bool:
    node = schema
    for name in path:
        node = node["properties"][name]
        if "$ref" in node:
            node = schema["definitions"][node["$ref"].rpartition("/")[2]]
    return "properties" in node and node["type"] == "object" and path[-1] not in WHOLE


def _at(values: dict[str, Any], path: list[str]) -> Any:
    for name in path:
        values = values[name]
    return values


def _compact(default: Any) -> str:
    return json.dumps(default, ensure_ascii=False)


def _meaning(comment: list[str]) -> str:
    """Return a comment as one line, without its indented examples."""
    unindented = [line.strip() for line in comment if not line.startswith("   ")]
    text = " ".join(line for line in unindented if line != "Without a preset:")
    return re.sub(r":$", ": values.yaml shows how.", text)


if __name__ == "__main__":
    sys.exit(main())
