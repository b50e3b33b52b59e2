"""Decide whether an existing object is as this operator would create it, so that the operator may adopt it.

After a request without an answer, or after a restart, the operator does not know which objects it has created. An
object's name, labels, annotations and owner prove nothing: anyone who may create such objects can copy them. So its
spec is compared with a preview: what the API server would store now (ADR 61).
"""

import copy

from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ForbiddenError, InvalidError
from accelbench.cluster_api.kinds import Kind
from accelbench_operator.runs.cluster import Cluster

GENERATED_LABELS = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
"""Labels that the API server adds to the template of a Job; they contain the Job's name and UID."""


async def is_as_created(cluster: Cluster, kind: Kind, body: Manifest, existing: Manifest) -> bool:
    """Return True if `existing` has the spec that the API server would store for `body` now."""
    try:
        preview = await cluster.preview(kind, body)
    except (ForbiddenError, InvalidError):
        # A quota or a policy refuses the preview, so nothing shows that the object is as created.
        return False
    return comparable_spec(existing) == comparable_spec(preview)


def comparable_spec(body: Manifest) -> Manifest:
    """Return the spec without the fields that differ between two objects created from the same manifest."""
    spec: Manifest = copy.deepcopy(body["spec"])
    # The API server generates the selector from the UID of a Job.
    spec.pop("selector", None)
    # Kueue changes this field at any time.
    spec.pop("suspend", None)
    template_metadata = (spec.get("template") or {}).get("metadata") or {}
    template_labels = template_metadata.get("labels") or {}
    for label in GENERATED_LABELS:
        template_labels.pop(label, None)
    return spec
