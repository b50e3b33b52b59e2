"""What a cluster holds, read with the user's own kubeconfig: the one part of the command line that talks to one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api import labels
from accelbench.frameworks.descriptor import not_installed

Manifest = dict[str, Any]
REQUEST_SECONDS = 30
OK = 200
FORBIDDEN = 403
NOT_FOUND = 404


class ClusterError(Exception):
    """The cluster cannot be asked; the message says why and what to do."""


@dataclass(frozen=True)
class Found:
    """What was read; None: the user may not list it, or the cluster has no such kind."""

    config_maps: Sequence[Manifest] | None
    nodes: Sequence[Manifest]
    pods: Sequence[Manifest] | None
    slices: Sequence[Manifest] | None


def read_cluster(context: str | None, class_name: str) -> Found:
    """The profiles of the operator of that class, and all nodes and what is on them; raises ClusterError.

    `context` is one of the kubeconfig's; None: its current one.
    """
    try:
        from kubernetes import config
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        raise ClusterError(not_installed("kubernetes", "operator")) from error
    try:
        api = config.new_client_from_config(context=context)
    except config.ConfigException as error:
        raise ClusterError(f"no cluster to ask: {error}; see kubectl config get-contexts, or set KUBECONFIG") from error
    with api:
        lists = Lists(api, HTTPError)
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
