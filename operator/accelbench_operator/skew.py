"""Check that the cluster's CRDs have every field that this release writes: an API server drops unknown fields.

The served OpenAPI document is public, so the operator needs no permission to read CRDs.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from accelbench.api import crd
from accelbench.api.metadata import GROUP, VERSION
from accelbench.cluster_api.errors import NotFoundError
from accelbench_operator.engine.api import KubernetesApi

SERVED = f"/openapi/v3/apis/{GROUP}/{VERSION}"
REMEDY = "apply those of this release, kubectl apply --server-side -f crds/"
NAMED_FIELDS = 3
"""Maximum number of missing fields that a message names."""

Schema = Mapping[str, Any]


async def find_skew(api: KubernetesApi) -> str:
    """Return what the cluster's CRDs lack and what to do, or an empty text; raise ApiError."""
    try:
        document = await api.get(SERVED)
    except NotFoundError:
        return f"the CRDs of {GROUP}/{VERSION} are not installed: {REMEDY}"
    return await asyncio.to_thread(compare, document)  # a tenth of a second


def compare(document: Mapping[str, Any]) -> str:
    """Return what the CRDs of an OpenAPI document lack and what to do, or an empty text."""
    served = {kind: schema for schema in document["components"]["schemas"].values() for kind in kinds_of(schema)}
    missing = [
        path for kind in crd.KINDS for path in missing_fields(own_schema(kind), served.get(kind.name, {}), kind.name)
    ]
    if not missing:
        return ""
    more = f" and {len(missing) - NAMED_FIELDS} more" if len(missing) > NAMED_FIELDS else ""
    return f"the cluster's CRDs are from another release and lack {', '.join(missing[:NAMED_FIELDS])}{more}: {REMEDY}"


def own_schema(kind: crd.CustomResource) -> Schema:
    """Return the schema in this release's CRD."""
    schema: Schema = crd.crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def kinds_of(schema: Schema) -> Iterator[str]:
    """Yield the kinds of this group and version that a served schema describes; none for a schema of parts."""
    for kind in schema.get("x-kubernetes-group-version-kind", ()):
        if (kind.get("group"), kind.get("version")) == (GROUP, VERSION):
            yield kind["kind"]


def missing_fields(own: Schema, served: Schema, path: str) -> Iterator[str]:
    """Yield the paths of fields and enum values that `own` has and `served` lacks."""
    if "allOf" in served or "$ref" in served:  # ObjectMeta, by reference
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
        served_values = served.get("additionalProperties")
        yield from missing_fields(
            own["additionalProperties"], served_values if isinstance(served_values, Mapping) else {}, f"{path}.*"
        )
    if "enum" in served:
        yield from (f"{path}={value}" for value in own.get("enum", ()) if value not in served["enum"])
