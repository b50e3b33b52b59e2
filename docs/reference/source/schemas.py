"""Write the pages of schemas: manifest, status and result, profiles."""

from collections.abc import Iterator

from accelbench.api.crd import KINDS, Schema, schema_of, to_structural_schema
from accelbench.api.manifest import RUN
from accelbench.api.pod_template import REFUSED_DESCRIPTION
from accelbench.api.profiles import ALWAYS_AVAILABLE, Profile, load_presets
from accelbench.report.markdown import markdown_table

MANIFEST = """# The manifest

Every field of a `BenchmarkRun`'s spec. Generated from its schema by `python docs/reference/build.py`. In a terminal:
`kubectl explain bmr.spec --recursive`. `accelbench validate` and the API server refuse anything else, with the same
messages.
"""
OBJECTS = """# Status and result

Every field of a run's status and of a `BenchmarkResult`. Generated from the schemas by
`python docs/reference/build.py`. In a terminal: `kubectl explain bmr.status --recursive`,
`kubectl explain bmres --recursive`. In a cluster, only the operator writes them. On a laptop, `CASE.result.json` is the
`result` of a `BenchmarkResult`.
"""
PROFILES = """# Profiles

Generated from `accelbench/api/presets.yaml` and the code by `python docs/reference/build.py`.
[Pools](../operations/pools.md) explains how to use them.
"""


def manifest() -> str:
    """Write a table for each part of the spec, in the schema's order."""
    spec = schema_of(RUN)["properties"]["spec"]
    sections = [("`spec`", _fields(spec, ""))]
    for name, part in spec["properties"].items():
        inner = part.get("items", part)
        if name != "podTemplate" and "properties" in inner:
            path = f"{name}[]" if part["type"] == "array" else name
            sections.append((f"`spec.{path}`", list(_nested(inner, ""))))
    pods = spec["properties"]["podTemplate"]["properties"]["spec"]["properties"]
    pod_fields = [row for row in _fields({"properties": pods}, "") if row[-1] != REFUSED_DESCRIPTION]
    sections.append(("`spec.podTemplate.spec`", pod_fields))
    columns = ("field", "default", "allowed", "what it is")
    tables = [f"## {heading}\n\n{markdown_table(columns, rows, right=set())}" for heading, rows in sections]
    return "\n\n".join([MANIFEST.rstrip(), *tables]) + "\n"


def objects() -> str:
    """Write a table for the status, and one for each part of a result."""
    run, result = (schema_of(kind)["properties"] for kind in KINDS)
    parts = [("A run's `status`", run["status"])]
    parts += [(f"A result's `{name}`", result[name]) for name in ("summary", "expectations", "result")]
    columns = ("field", "allowed", "what it is")
    written = []
    for heading, part in parts:
        rows = [(name, values, what) for name, _, values, what in _nested(part.get("items", part), "")]
        written.append(f"## {heading}\n\n{markdown_table(columns, rows, right=set())}")
    return "\n\n".join([OBJECTS.rstrip(), *written]) + "\n"


def profiles() -> str:
    """Write the presets, and the fields of a profile."""
    written = Profile.model_json_schema(by_alias=True)
    fields = to_structural_schema(written, written["$defs"], "Profile")
    preset = ("preset", "", "a name above", "A ready-made profile. A field next to it replaces the preset's field.")
    own = [row for row in _nested(fields, "") if row[0] != "name"]
    rows = [
        (
            name,
            profile.platform,
            f"{profile.slice_chips or 1} {profile.resource or profile.device_class or 'node'}",
            ", ".join(f"{key}={value}" for key, value in profile.node_selector.items()),
            ", ".join(f"{each.key}{f'={each.value}' if each.value else ''}" for each in profile.tolerations),
            "yes" if name in ALWAYS_AVAILABLE else "",
        )
        for name, profile in load_presets().items()
    ]
    columns = ("profile", "platform", "a pod asks for", "labels of its nodes", "tolerates", "always exists")
    ready_ = markdown_table(columns, rows, right=set())
    table = markdown_table(("field", "default", "allowed", "what it is"), [preset, *own], right=set())
    return f"{PROFILES}\n## Ready-made profiles\n\n{ready_}\n\n## Fields\n\n{table}\n"


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
    """Yield the fields, each followed by its own fields."""
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
        return "number or text"
    return {"boolean": "true, false", "integer": "integer", "string": "text"}.get(field.get("type", ""), "")
