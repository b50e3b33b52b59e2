import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import BaseModel, Field

from accelbench.api import crd
from accelbench.api.admission import to_stored
from accelbench.api.crd import KINDS, CustomResource, NotStructuralError
from accelbench.api.manifest import RUN
from accelbench.api.rules import ENVIRONMENTS_ON_LAPTOPS, LAPTOP_ONLY, RULES, RULES_KEYWORD
from accelbench.api.run import Accelerator, Measurement, RunPolicy
from api.manifests import GOOD
from cluster.cluster import Cluster

RESULT = next(kind for kind in KINDS if kind.name == "BenchmarkResult")

NAMES = [kind.name for kind in KINDS]
SCHEMAS = [pytest.param(crd.schema_of(kind), id=kind.name) for kind in KINDS]


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema in a schema, with its path."""
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from nodes(schema[name], f"{path}[]")


def test_the_generated_files_match_the_models() -> None:
    assert crd.drift(crd.DIRECTORY) == ""


def test_a_stale_generated_file_is_reported_with_the_command_that_generates_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crd, "DIRECTORY", tmp_path)
    output: list[str] = []
    assert crd.main([], output.append) == 0
    assert crd.main(["--check"], output.append) == 0
    assert output == []
    file = tmp_path / "benchmarkruns.accelbench.dev.yaml"
    file.write_text(file.read_text().replace("maxItems: 16", "maxItems: 17"))
    assert crd.main(["--check"], output.append) == 1
    assert "-                maxItems: 17\n+                maxItems: 16\n" in output[0]
    assert "run: python -m accelbench.api.crd" in output[0]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_there_are_no_floats_and_no_references(schema: dict[str, Any]) -> None:
    assert all(node.get("type") != "number" and "$ref" not in node for _, node in nodes(schema))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_list_defines_how_it_is_merged(schema: dict[str, Any]) -> None:
    assert all("x-kubernetes-list-type" in node for _, node in nodes(schema) if node.get("type") == "array")


def test_everything_that_a_user_writes_is_bounded() -> None:
    unbounded = [
        path
        for path, node in nodes(crd.schema_of(RUN)["properties"]["spec"])
        if (node.get("type") == "array" and "maxItems" not in node)
        or ("additionalProperties" in node and "maxProperties" not in node)
        or (node.get("type") == "integer" and not {"minimum", "maximum"} <= set(node))
        or (node.get("type") == "string" and not {"maxLength", "enum"} & set(node))
    ]
    assert unbounded == []


@pytest.mark.parametrize(
    ("kind", "field"), [(RUN, "status"), *((RESULT, name) for name in ("summary", "expectations", "result"))]
)
def test_everything_that_is_reported_is_bounded(kind: crd.CustomResource, field: str) -> None:
    unbounded = [
        path
        for path, node in nodes(crd.schema_of(kind)["properties"][field])
        if (node.get("type") == "array" and "maxItems" not in node)
        or ("additionalProperties" in node and "maxProperties" not in node)
        or (node.get("type") == "integer" and not {"minimum", "maximum"} <= set(node))
        or (node.get("type") == "string" and not {"maxLength", "enum"} & set(node))
    ]
    assert unbounded == []


def test_every_field_that_a_user_writes_is_explained_but_for_the_pods() -> None:
    spec = crd.schema_of(RUN)["properties"]["spec"]
    bare = [path for path, node in nodes(spec) if "description" not in node and not path.endswith("[]")]
    assert [path for path in bare if not path.startswith(".podTemplate.")] == []


def test_every_rule_of_a_schema_is_one_that_python_checks_too() -> None:
    schemas = [schema for kind in KINDS for _, schema in nodes(crd.schema_of(kind))]
    written = [rule["rule"] for schema in schemas for rule in schema.get(RULES_KEYWORD, ())]
    assert set(written) == set(RULES)
    on_laptops = {LAPTOP_ONLY.cel, ENVIRONMENTS_ON_LAPTOPS.cel}
    assert all(("oldSelf" in cel or cel in on_laptops) == (RULES[cel].holds is None) for cel in written)


def test_the_schemas_defaults_are_the_models_own() -> None:
    spec = to_stored(RUN, GOOD)["spec"]
    for name, model in (("measurement", Measurement), ("accelerator", Accelerator), ("runPolicy", RunPolicy)):
        assert spec[name] == json.loads(model().to_json())


class Fractional(BaseModel):
    """Represent a model that no CRD can express."""

    share: float


class Shapeless(BaseModel):
    """Another."""

    anything: dict[str, Any]


class Mixed(BaseModel):
    """Another."""

    value: list[str] | int


class Odd(BaseModel):
    """Another."""

    even: int = Field(multiple_of=2)


class Alike(BaseModel):
    """Represent a model that a CRD can express."""

    kind: Literal["a"]
    value: int | str


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Fractional, "no floats"),
        (Shapeless, "an object needs"),
        (Mixed, "int-or-string is the only union"),
        (Odd, "multipleOf"),
    ],
)
def test_a_model_that_no_structural_schema_can_express_is_refused(model: type[BaseModel], says: str) -> None:
    written = model.model_json_schema()
    with pytest.raises(NotStructuralError, match=says):
        crd.to_structural_schema(written, {}, model.__name__)


def test_a_field_of_two_types_becomes_int_or_string() -> None:
    schema = crd.to_structural_schema(Alike.model_json_schema(), {}, "Alike")
    assert schema["properties"] == {
        "kind": {"type": "string", "enum": ["a"]},
        "value": {"x-kubernetes-int-or-string": True},
    }


def test_the_server_serves_both_kinds(crds: Cluster) -> None:
    for kind in KINDS:
        conditions = crds.get("crd", f"{kind.plural}.accelbench.dev")["status"]["conditions"]
        # NonStructuralSchema would be among them.
        assert {each["type"]: each["status"] for each in conditions} == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_the_server_stores_the_generated_schema_unchanged(crds: Cluster, kind: CustomResource) -> None:
    kept = crds.get("crd", f"{kind.plural}.accelbench.dev")["spec"]["versions"][0]
    generated = yaml.safe_load(crd.render(kind))["spec"]["versions"][0]
    assert kept["schema"] == generated["schema"]


def test_kubectl_explains_the_spec(crds: Cluster) -> None:
    output = crds.kubectl("explain", "bmr.spec").stdout
    assert "Define what to compare, where, and how certain the result must be." in output
    assert "A variant's name; default: the first variant." in output
    measurement = crds.kubectl("explain", "bmr.spec.measurement.precision").stdout
    assert "ENUM: float64 float32 tf32 bfloat16 float16 default" in " ".join(measurement.split())


def test_short_names_and_the_category_find_the_kinds(server: Cluster) -> None:
    server.apply(GOOD)
    assert server.kubectl("get", "bmr", "--output=name").stdout == "benchmarkrun.accelbench.dev/matmul-chain\n"
    assert server.kubectl("get", "accelbench", "--output=name").stdout == "benchmarkrun.accelbench.dev/matmul-chain\n"
    assert server.kubectl("get", "bmres", "--output=name").stdout == ""
