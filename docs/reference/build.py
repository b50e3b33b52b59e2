"""Writes the pages beside this file from the code that they describe.

python docs/reference/build.py            writes them
python docs/reference/build.py --check    fails where one is not what the code says
"""

import argparse
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml

from accelbench import catalogue
from accelbench.api.crd import Schema, schema_of, structural
from accelbench.api.manifest import RUN
from accelbench.api.numbers import MEASURED
from accelbench.api.numbers import NUMBERS as REGISTERED
from accelbench.api.profiles import ALWAYS, Profile, ready
from accelbench.api.reasons import AttemptReason, ConditionReason, FailureReason, StopReason
from accelbench.claims import ledger
from accelbench.cli.workloads import allowed, describe
from accelbench.report.markdown import markdown_table
from accelbench.workload import Workload

HERE = Path(__file__).resolve().parent
CLAIMS = HERE.parents[1] / "examples" / "claims"
WORKLOADS = """# Workloads

Generated from the code by `python docs/reference/build.py`; the same in the terminal: `accelbench workloads NAME`.
"""

NUMBERS = """# Numbers

Everything that is measured of a variant, generated from the code by `python docs/reference/build.py`.
A manifest asks for a number by its name: `metric: speedup`. A result holds the stored ones in `variants[].numbers`.
A number without a unit is a count.
"""

PROFILES = """# Profiles

Generated from `accelbench/api/presets.yaml` and the code by `python docs/reference/build.py`.
[Pools](../operations/pools.md) says how to use them.
"""

REFUSED = "Not for a run to set."
MANIFEST = """# The manifest

What a `BenchmarkRun` can ask for, generated from its schema by `python docs/reference/build.py`. The same in a
terminal: `kubectl explain bmr.spec --recursive`. `accelbench validate` and the API server refuse anything else, in the
same words.
"""

REASONS = """# Reasons

The words that `kubectl` and results give for what happened, generated from the code by
`python docs/reference/build.py`.
"""


def claims() -> dict[str, list[str]]:
    """The rows that ask each workload, as links to their manifests."""
    found = defaultdict(list)
    for claim in ledger.load(CLAIMS):
        for manifest in claim.manifests:
            asked = yaml.safe_load((CLAIMS / manifest).read_text())["spec"]["workload"]["name"]
            found[asked].append(f"[{claim.row}](../../examples/claims/{manifest})")
    return found


def section(workload: Workload, rows: list[str]) -> str:
    """Purpose, parameters, variants, what is observed, cost, claims."""
    described = describe(workload)
    parts = [f"## {workload.name}", _paragraphs(type(workload))]
    if described["parameters"]:
        parameters = [
            (name, str(schema.get("default", "")), allowed(schema), schema.get("description", ""))
            for name, schema in described["parameters"].items()
        ]
        parts.append(markdown_table(("parameter", "default", "allowed", "what it is"), parameters, right=set()))
    variants = [
        (use, ", ".join(variant["options"]), variant["summary"]) for use, variant in described["variants"].items()
    ]
    parts.append(markdown_table(("variant", "options", "what it is"), variants, right=set()))
    if described["observes"]:
        parts.append(markdown_table(("observed", "what it is"), described["observes"].items(), right=set()))
    else:
        protocol = workload.measure(workload.Parameters()).protocol
        measured = f"Measured by protocol `{protocol}`, a {described['unit']} at a time."
        own = type(workload).measure is not Workload.measure
        parts.append(f"{measured} {_paragraphs(type(workload).measure)}" if own else measured)
        if type(workload).cost is not Workload.cost:
            parts.append(f"Cost: {_paragraphs(type(workload).cost)}")
    if rows:
        parts.append(f"Claims: {', '.join(rows)}.")
    return "\n\n".join(parts)


def _paragraphs(documented: object) -> str:
    text = (inspect.getdoc(documented) or "").replace("<", "\\<").replace("*", "\\*")
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def workloads() -> str:
    """A section each, with the claims that ask it."""
    rows = claims()
    sections = [section(catalogue.find(name), rows[name]) for name in catalogue.names()]
    return "\n\n".join([WORKLOADS.rstrip(), *sections]) + "\n"


def numbers() -> str:
    """One table."""
    stored = {number.name for number in MEASURED.values()}
    rows = [
        (
            number.name,
            number.meaning,
            number.unit,
            "yes" if number.expected else "",
            "yes" if number.name in stored else "",
            number.metric,
        )
        for number in REGISTERED.values()
    ]
    columns = ("number", "what it is", "unit", "expectation", "stored", "Prometheus")
    return f"{NUMBERS}\n{markdown_table(columns, rows, right=set())}\n"


def manifest() -> str:
    """A table for each part of the spec, in the schema's order."""
    spec = schema_of(RUN)["properties"]["spec"]
    sections = [("`spec`", _fields(spec, ""))]
    for name, part in spec["properties"].items():
        inner = part.get("items", part)
        if name != "podTemplate" and "properties" in inner:
            path = f"{name}[]" if part["type"] == "array" else name
            sections.append((f"`spec.{path}`", list(_nested(inner, ""))))
    pods = spec["properties"]["podTemplate"]["properties"]["spec"]["properties"]
    sections.append(
        ("`spec.podTemplate.spec`", [row for row in _fields({"properties": pods}, "") if row[-1] != REFUSED])
    )
    columns = ("field", "default", "allowed", "what it is")
    tables = [f"## {heading}\n\n{markdown_table(columns, rows, right=set())}" for heading, rows in sections]
    return "\n\n".join([MANIFEST.rstrip(), *tables]) + "\n"


def _fields(schema: Schema, path: str) -> list[tuple[str, str, str, str]]:
    required = set(schema.get("required", ()))
    return [
        (
            f"{path}{name}{'[]' if field.get('type') == 'array' else ''}",
            "required" if name in required else _default(field),
            _allowed(field.get("items", field) if field.get("type") == "array" else field),
            field.get("description", ""),
        )
        for name, field in schema["properties"].items()
    ]


def _nested(schema: Schema, path: str) -> Iterator[tuple[str, str, str, str]]:
    """The fields, each followed by its own."""
    for row, (name, field) in zip(_fields(schema, path), schema["properties"].items(), strict=True):
        yield row
        inner = field.get("items", field)
        if "properties" in inner:
            yield from _nested(inner, f"{path}{name}{'[]' if field['type'] == 'array' else ''}.")


def _default(field: Schema) -> str:
    value = field.get("default", "")
    return "" if isinstance(value, dict | list) else str(value).lower() if isinstance(value, bool) else str(value)


def _allowed(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(field["enum"])
    if "minimum" in field and "maximum" in field and field["maximum"] < 2**31 - 1:
        return f"{field['minimum']} to {field['maximum']}"
    if field.get("x-kubernetes-int-or-string"):
        return "a number or a text"
    return {"boolean": "true, false", "integer": "a whole number", "string": "a text"}.get(field.get("type", ""), "")


def profiles() -> str:
    """The ready ones, and the fields of one."""
    written = Profile.model_json_schema(by_alias=True)
    fields = structural(written, written["$defs"], "Profile")
    preset = ("preset", "", "a name above", "A ready profile: what is written beside it is in place of its own.")
    own = [row for row in _nested(fields, "") if row[0] != "name"]
    rows = [
        (
            name,
            profile.platform,
            f"{profile.slice_chips or 1} {profile.resource or profile.device_class or 'node'}",
            ", ".join(f"{key}={value}" for key, value in profile.node_selector.items()),
            ", ".join(f"{each.key}{f'={each.value}' if each.value else ''}" for each in profile.tolerations),
            "yes" if name in ALWAYS else "",
        )
        for name, profile in ready().items()
    ]
    columns = ("profile", "platform", "a pod asks for", "labels of its nodes", "tolerates", "always there")
    ready_ = markdown_table(columns, rows, right=set())
    table = markdown_table(("field", "default", "allowed", "what it is"), [preset, *own], right=set())
    return f"{PROFILES}\n## Ready ones\n\n{ready_}\n\n## Fields\n\n{table}\n"


def reasons() -> str:
    """A table for each kind."""
    tables = []
    for kind, heading, retried in (
        (ConditionReason, "Of a run: `status.conditions[].reason`, `status.phase`", False),
        (AttemptReason, "Of an attempt at a case: `status.attempts[].reason`", True),
        (FailureReason, "Of a variant: `result.variants[].failure.reason`", False),
        (StopReason, "Of the end of a case: `result.stopped`", False),
    ):
        columns = ("reason", "what it means", "what to do", *(["tried again"] if retried else []))
        rows = [
            (
                each.value,
                each.meaning,
                f"{each.remedy}." if each.remedy else "",
                *(["yes" if each.retried else ""] if retried else []),
            )
            for each in kind
        ]
        tables.append(f"## {heading}\n\n{markdown_table(columns, rows, right=set())}")
    return "\n\n".join([REASONS.rstrip(), *tables]) + "\n"


PAGES = {
    "manifest.md": manifest,
    "workloads.md": workloads,
    "numbers.md": numbers,
    "profiles.md": profiles,
    "reasons.md": reasons,
}


def main(arguments: list[str] | None = None) -> int:
    """Write or check; returns the exit status."""
    parser = argparse.ArgumentParser(description="Generate the reference pages.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a page is out of date")
    check = parser.parse_args(arguments).check
    stale = []
    for name, render in PAGES.items():
        page, text = HERE / name, render()
        if not check:
            page.write_text(text)
        elif not page.exists() or page.read_text() != text:
            stale.append(f"docs/reference/{name}")
    if stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}: python docs/reference/build.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
