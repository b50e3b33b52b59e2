"""Write the pages of schemas: manifest, status and result, profiles."""

from collections.abc import Iterator

from accelbench.api.crd import KINDS, Schema, schema_of, to_structural_schema
from accelbench.api.manifest import RUN
from accelbench.api.pod_template import REFUSED_DESCRIPTION
from accelbench.api.profiles import ALWAYS_AVAILABLE, Profile, ProfileToleration, load_presets
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
    """Return the page of the manifest: a table for each part of the spec, in the schema's order."""
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
    """Return the page of objects: a table for a run's status, and one for each part of a result."""
    run, result = (schema_of(kind)["properties"] for kind in KINDS)
    parts = [("A run's `status`", run["status"])]
    parts += [(f"A result's `{name}`", result[name]) for name in ("summary", "expectations", "result")]
    columns = ("field", "allowed", "what it is")
    sections = []
    for heading, part in parts:
        fields = _nested(part.get("items", part), "")
        rows = [(name, allowed, meaning) for name, _default, allowed, meaning in fields]
        sections.append(f"## {heading}\n\n{markdown_table(columns, rows, right=set())}")
    return "\n\n".join([OBJECTS.rstrip(), *sections]) + "\n"


def profiles() -> str:
    """Return the page of profiles: the ready-made ones, and the fields of a profile."""
    json_schema = Profile.model_json_schema(by_alias=True)
    schema = to_structural_schema(json_schema, json_schema["$defs"], "Profile")
    preset = ("preset", "", "a name above", "A ready-made profile. A field next to it replaces the preset's field.")
    field_rows = [row for row in _nested(schema, "") if row[0] != "name"]
    rows = [
        (
            name,
            profile.platform,
            f"{profile.slice_chips or 1} {profile.resource or profile.device_class or 'node'}",
            ", ".join(f"{key}={value}" for key, value in profile.node_selector.items()),
            ", ".join(map(_toleration, profile.tolerations)),
            "yes" if name in ALWAYS_AVAILABLE else "",
        )
        for name, profile in load_presets().items()
    ]
    columns = ("profile", "platform", "a pod asks for", "labels of its nodes", "tolerates", "always exists")
    ready_made = markdown_table(columns, rows, right=set())
    table = markdown_table(("field", "default", "allowed", "what it is"), [preset, *field_rows], right=set())
    return f"{PROFILES}\n## Ready-made profiles\n\n{ready_made}\n\n## Fields\n\n{table}\n"


def _toleration(toleration: ProfileToleration) -> str:
    """Return a toleration's key, with its value if it has one: `gpu=present`."""
    return f"{toleration.key}={toleration.value}" if toleration.value else str(toleration.key)


def _fields(schema: Schema, path: str) -> list[tuple[str, str, str, str]]:
    """Return a row for each field of the object at `path`: name, default, allowed values, description."""
    required = set(schema.get("required", ()))
    rows = []
    for name, field in schema["properties"].items():
        is_list = field.get("type") == "array"
        field_path = f"{path}{name}[]" if is_list else f"{path}{name}"
        default = "required" if name in required else _default(field)
        allowed = _allowed(field.get("items", field) if is_list else field)
        rows.append((field_path, default, allowed, field.get("description", "")))
    return rows


def _nested(schema: Schema, path: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each field of the object at `path`, followed by the rows of the fields inside it."""
    for row, (name, field) in zip(_fields(schema, path), schema["properties"].items(), strict=True):
        yield row
        inner = field.get("items", field)
        if "properties" in inner:
            yield from _nested(inner, f"{path}{name}{'[]' if field['type'] == 'array' else ''}.")


def _default(field: Schema) -> str:
    """Return a field's default as text; empty without one, and for an object or a list."""
    value = field.get("default", "")
    if isinstance(value, dict | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _allowed(field: Schema) -> str:
    """Describe the values that a field may have, such as `1 to 16`; empty for an object."""
    if "enum" in field:
        return ", ".join(field["enum"])
    if "minimum" in field and "maximum" in field and field["maximum"] < 2**31 - 1:
        return f"{field['minimum']} to {field['maximum']}"
    if field.get("x-kubernetes-int-or-string"):
        return "number or text"
    return {"boolean": "true, false", "integer": "integer", "string": "text"}.get(field.get("type", ""), "")
