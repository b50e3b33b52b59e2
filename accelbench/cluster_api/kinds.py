"""Name the kinds of objects that accelbench reads or writes, and their paths in the API."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accelbench.api.metadata import API_VERSION

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
"""Kubernetes' verbs by HTTP method; GET is get, list or watch."""
_RESOURCE = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+/(?:namespaces/[^/]+/(?=.))?(?P<resource>[^/]+)(?P<name>/[^/]+)?(?P<subresource>/.+)?"
)
"""Matches a path such as `/api/v1/namespaces/team/pods/a/log`, with or without namespace, name and subresource.

In `/api/v1/namespaces/team`, where nothing follows, `namespaces` is the resource.
"""


@dataclass(frozen=True)
class Kind:
    """Name a kind and where the API server serves it."""

    name: str
    plural: str
    api_version: str
    """`v1`, or group and version: `batch/v1`."""

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Return the API path of the object `name` or, without a name, of all objects of this kind.

        Without `namespace`, the path is that of a kind without namespaces, or of the objects in all namespaces.
        """
        root = "apis" if "/" in self.api_version else "api"
        namespace_path = f"namespaces/{namespace}" if namespace else ""
        segments = (root, self.api_version, namespace_path, self.plural, name, subresource)
        return "/" + "/".join(segment for segment in segments if segment)


RUN = Kind("BenchmarkRun", "benchmarkruns", API_VERSION)
RESULT = Kind("BenchmarkResult", "benchmarkresults", API_VERSION)
POD = Kind("Pod", "pods", "v1")
EVENT = Kind("Event", "events", "v1")
NODE = Kind("Node", "nodes", "v1")
NAMESPACE = Kind("Namespace", "namespaces", "v1")
CONFIG_MAP = Kind("ConfigMap", "configmaps", "v1")
JOB = Kind("Job", "jobs", "batch/v1")
LEASE = Kind("Lease", "leases", "coordination.k8s.io/v1")
CLAIM_TEMPLATE = Kind("ResourceClaimTemplate", "resourceclaimtemplates", "resource.k8s.io/v1")
RESOURCE_SLICE = Kind("ResourceSlice", "resourceslices", "resource.k8s.io/v1")


def verb_and_resource(method: str, path: str, query: Mapping[str, Any]) -> tuple[str, str]:
    """Return (verb, resource) of a request to the API server, as RBAC and Kubernetes' own metrics name them.

    For `GET /api/v1/namespaces/team/pods/a/log` the result is `("get", "pods/log")`. A path of another form, such as
    `/version`, is itself the resource.
    """
    match = _RESOURCE.fullmatch(path)
    if method in VERBS:
        verb = VERBS[method]
    elif "watch" in query:
        verb = "watch"
    elif match and not match["name"]:
        verb = "list"
    else:
        verb = "get"
    if match is None:
        return verb, path
    subresource = match["subresource"] or ""
    return verb, match["resource"] + subresource
