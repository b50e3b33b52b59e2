"""Check that the cluster's CRDs have every field that this release writes: an API server drops unknown fields.

Skew is a difference between this release's CRDs and those that the cluster serves, which may be of another release.
The served OpenAPI document is public, so the operator needs no permission to read CRDs.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from accelbench.api import crd
from accelbench.api.metadata import GROUP, VERSION
from accelbench.cluster_api.errors import NotFoundError
from accelbench_operator.engine.api import KubernetesApi

SCHEMAS_PATH = f"/openapi/v3/apis/{GROUP}/{VERSION}"
KINDS_PATH = f"/apis/{GROUP}/{VERSION}"
REMEDY = "apply those of this release, kubectl apply --server-side -f crds/"
NAMED_FIELDS = 3
"""Maximum number of missing fields that a message names."""

Schema = Mapping[str, Any]


async def find_skew(api: KubernetesApi) -> str:
    """Return which fields of this release the cluster's CRDs lack, and the remedy; empty if they lack none."""
    # First ask for the kinds: for some seconds after their deletion, the OpenAPI document still has them.
    if problem := await find_missing_kinds(api):
        return problem
    try:
        document = await api.get(SCHEMAS_PATH)
    except NotFoundError:
        return f"the CRDs of {GROUP}/{VERSION} are not installed: {REMEDY}"
    # In a thread: a tenth of a second is too long for the event loop.
    return await asyncio.to_thread(describe_skew, document)


async def find_missing_kinds(api: KubernetesApi) -> str:
    """Return which kinds the cluster does not serve, and the remedy; empty if it serves all."""
    try:
        served = {resource["kind"] for resource in (await api.get(KINDS_PATH))["resources"]}
    except NotFoundError:
        served = set()
    missing = [kind.name for kind in crd.KINDS if kind.name not in served]
    return f"the CRDs of {' and '.join(missing)} are not installed: {REMEDY}" if missing else ""


def describe_skew(document: Mapping[str, Any]) -> str:
    """Return which fields of this release the CRDs in an OpenAPI document lack; empty if they lack none."""
    served_schemas = {}
    for schema in document["components"]["schemas"].values():
        for kind_name in kinds_of(schema):
            served_schemas[kind_name] = schema
    missing: list[str] = []
    for kind in crd.KINDS:
        missing += missing_fields(own_schema(kind), served_schemas.get(kind.name, {}), kind.name)
    if not missing:
        return ""
    others = f" and {len(missing) - NAMED_FIELDS} more" if len(missing) > NAMED_FIELDS else ""
    return f"the cluster's CRDs are from another release and lack {', '.join(missing[:NAMED_FIELDS])}{others}: {REMEDY}"


def own_schema(kind: crd.CustomResource) -> Schema:
    """Return the schema of the kind from the CRD of this release."""
    schema: Schema = crd.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def kinds_of(schema: Schema) -> Iterator[str]:
    """Yield the kinds of accelbench that an OpenAPI schema describes."""
    for kind in schema.get("x-kubernetes-group-version-kind", ()):
        if (kind.get("group"), kind.get("version")) == (GROUP, VERSION):
            yield kind["kind"]


def missing_fields(own: Schema, served: Schema, path: str) -> Iterator[str]:
    """Yield each field and enum value that the cluster's schema lacks.

    Args:
        own: A schema of this release.
        served: The cluster's schema of the same field.
        path: The path of that field, such as `BenchmarkRun.spec`.
    """
    if "allOf" in served or "$ref" in served:
        # This is ObjectMeta: Kubernetes defines it, and the CRD's schema only refers to it.
        return
    served_properties = served.get("properties", {})
    for name, schema in own.get("properties", {}).items():
        if name in served_properties:
            yield from missing_fields(schema, served_properties[name], f"{path}.{name}")
        elif not served.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{name}"
    if isinstance(own.get("items"), Mapping):
        yield from missing_fields(own["items"], served.get("items", {}), f"{path}[]")
    if isinstance(own.get("additionalProperties"), Mapping):
        served_values = served.get("additionalProperties")  # True or False allows or forbids values, without a schema
        if not isinstance(served_values, Mapping):
            served_values = {}
        yield from missing_fields(own["additionalProperties"], served_values, f"{path}.*")
    if "enum" in served:  # without it, the cluster accepts every value
        yield from (f"{path}={value}" for value in own.get("enum", ()) if value not in served["enum"])
