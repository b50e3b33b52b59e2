"""What a cluster holds, read with the user's own kubeconfig: the one part of the command line that talks to one."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.api import labels
from accelbench.frameworks.descriptor import not_installed
from accelbench.problem import unknown

Manifest = dict[str, Any]
REQUEST_SECONDS = 30
OK = 200
FORBIDDEN = 403
NOT_FOUND = 404
POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ClusterError(Exception):
    """The cluster cannot be asked; the message says why and what to do."""


@dataclass(frozen=True)
class Found:
    """What was read; None: the user may not list it, or the cluster has no such kind."""

    config_maps: Sequence[Manifest] | None
    nodes: Sequence[Manifest]
    pods: Sequence[Manifest] | None
    slices: Sequence[Manifest] | None


@dataclass(frozen=True)
class Connection:
    """An API server, and who asks it."""

    api: Any
    """The kubernetes client, with the user's own credentials."""
    namespace: str
    """The context's, or the pod's."""
    no_answer: type[Exception]
    """What it raises where there is none."""


def connect(context: str | None = None, kubeconfig: Path | None = None) -> Connection:
    """To the cluster of a kubeconfig's context, or inside of a pod to its own; raises ClusterError.

    `context` is one of the kubeconfig's; None: its current one. Without `kubeconfig` it is found as kubectl does.
    """
    try:
        from kubernetes import client, config
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        raise ClusterError(f"the Python package {not_installed('kubernetes', 'kubectl')}") from error
    file = None if kubeconfig is None else str(kubeconfig)
    try:
        api = config.new_client_from_config(file, context)
        return Connection(api, _namespace(context, kubeconfig), HTTPError)
    except config.ConfigException as error:
        if file is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            inside = client.Configuration()
            config.load_incluster_config(client_configuration=inside)
            return Connection(client.ApiClient(inside), POD_NAMESPACE.read_text().strip(), HTTPError)
        known = contexts(kubeconfig)
        if context is not None and known and context not in known:
            raise ClusterError(f"cannot reach a cluster: {unknown('context', context, known)}") from error
        raise ClusterError(
            f"cannot reach a cluster: {str(error).rstrip('. ')}; see kubectl config get-contexts, or set KUBECONFIG"
        ) from error
    except (OSError, ValueError) as error:
        raise ClusterError(f"cannot reach a cluster: the kubeconfig cannot be read: {error}") from error


def contexts(kubeconfig: Path | None = None) -> dict[str, dict[str, str]]:
    """The kubeconfig's contexts by name, the current one first; none where it cannot be read."""
    try:
        from kubernetes import config

        listed, current = config.list_kube_config_contexts(None if kubeconfig is None else str(kubeconfig))
    except Exception:  # noqa: BLE001 - the client raises whatever its YAML does
        return {}
    first = [current] if current else []
    return {each["name"]: each.get("context") or {} for each in (*first, *listed)}


def _namespace(context: str | None, kubeconfig: Path | None) -> str:
    known = contexts(kubeconfig)
    chosen = known.get(context or next(iter(known), ""), {})
    return chosen.get("namespace") or "default"


def read_cluster(context: str | None, class_name: str, kubeconfig: Path | None = None) -> Found:
    """The profiles of the operator of that class, and all nodes and what is on them; raises ClusterError."""
    connection = connect(context, kubeconfig)
    with connection.api as api:
        lists = Lists(api, connection.no_answer)
        nodes = lists.of("/api/v1/nodes")
        if nodes is None:
            raise ClusterError("you may not list nodes in this cluster: ask its administrator for that permission")
        selector = f"{labels.PROFILES}=true,{labels.CLASS}={class_name}"
        return Found(
            lists.of("/api/v1/configmaps", labelSelector=selector),
            nodes,
            lists.of("/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed"),
            lists.of("/apis/resource.k8s.io/v1/resourceslices"),
        )


class Lists:
    """Lists of one API server."""

    def __init__(self, api: Any, no_answer: type[Exception]) -> None:
        self._api = api
        self._no_answer = no_answer

    def of(self, path: str, **query: str) -> Sequence[Manifest] | None:
        """All there are, page by page; None where they may not be listed, or the server knows no such kind."""
        found: list[Manifest] = []
        page = {"limit": "500", **query}
        while True:
            asked = self._api.param_serialize(
                "GET",
                path,
                query_params=list(page.items()),
                header_params={"Accept": "application/json"},
                auth_settings=["BearerToken"],
            )
            try:
                response = self._api.call_api(*asked, _request_timeout=REQUEST_SECONDS)
                content = response.read()
            except self._no_answer as error:
                raise ClusterError(f"the cluster does not answer: {error}") from error
            if response.status in {FORBIDDEN, NOT_FOUND}:
                return None
            if response.status != OK:
                raise ClusterError(f"the cluster refuses GET {path}: {response.status} {response.reason}")
            answer = json.loads(content)
            found += answer["items"]
            if not (further := answer["metadata"].get("continue")):
                return found
            page = page | {"continue": further}
