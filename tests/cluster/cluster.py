"""A running cluster, as a test sees it: the same whether the tests started it or were given it."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.parse
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kubernetes import aio, client, config

from cluster.containerd import SOCKET_NAME, import_image, name_image
from cluster.errors import ClusterError, KubectlError
from cluster.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Cluster"]

KUBECTL_TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Cluster:
    """Where a cluster is, and the few things that every test does with one. The caller is its administrator."""

    kubeconfig: Path
    kubectl_program: Path
    namespace: str = "default"

    def kubectl(
        self,
        *arguments: str | Path,
        input: str | None = None,  # noqa: A002 - as subprocess.run has it
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl in the cluster's namespace.

        Raises `KubectlError` with what kubectl said where it fails, unless check is off.
        """
        done = subprocess.run(
            [self.kubectl_program, f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *arguments],
            input=input,
            capture_output=True,
            text=True,
            timeout=KUBECTL_TIMEOUT_SECONDS,
            check=False,
            env={**os.environ, "KUBECACHEDIR": str(self.kubeconfig.parent / "kubectl-cache"), "KUBERC": "off"},
        )
        if check and done.returncode:
            raise KubectlError(f"kubectl {' '.join(map(str, arguments))} failed:\n{done.stderr}")
        return done

    def get(self, *arguments: str) -> Any:
        """Return what `kubectl get` finds, as JSON."""
        return json.loads(self.kubectl("get", *arguments, "--output=json").stdout)

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create or update objects."""
        self.kubectl("apply", "--filename=-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def define(self, directory: Path) -> None:
        """Apply the CustomResourceDefinitions in the directory, and return once kubectl can find their kinds."""
        self.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={directory}")
        self.kubectl("wait", "--for=condition=Established", "--timeout=900s", f"--filename={directory}")
        # Established is not yet discovered: for a moment the server tells of groups that it has listed before.
        names = self.kubectl("get", f"--filename={directory}", "--output=jsonpath={.items[*].metadata.name}").stdout

        def discovered() -> bool:
            found = self.kubectl("api-resources", "--verbs=list", "--output=name", "--cached=false").stdout
            return set(names.split()) <= set(found.split())

        wait_until(discovered, what=f"{names} to be discovered")

    def client(self) -> client.ApiClient:
        """Return a new client of the API server; close it, or use it in a with statement."""
        return config.new_client_from_config(str(self.kubeconfig))

    async def configuration(self) -> aio.client.Configuration:
        """The same for clients that wait with asyncio."""
        found = aio.client.Configuration()
        await aio.config.load_kube_config(str(self.kubeconfig), client_configuration=found)
        return found

    @cached_property
    def server(self) -> urllib.parse.SplitResult:
        """The API server's address; a pod needs its hostname and port, as no Service leads there."""
        url = self.kubectl("config", "view", "--minify", "--output=jsonpath={.clusters[0].cluster.server}").stdout
        return urllib.parse.urlsplit(url)

    @cached_property
    def node(self) -> str:
        """The name of a node that is ready; raises `ClusterError` without one."""
        for node in self.get("nodes")["items"]:
            if any(
                each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ())
            ):
                return str(node["metadata"]["name"])
        raise ClusterError("the cluster has no node that is ready")

    def offer(self, resources: Mapping[str, int]) -> None:
        """Let the node offer devices it does not have, such as {"nvidia.com/gpu": 4}; the scheduler believes it."""
        patch = [
            {"op": "add", "path": f"/status/{field}/{name.replace('/', '~1')}", "value": str(count)}
            for field in ("capacity", "allocatable")
            for name, count in resources.items()
        ]
        self.kubectl("patch", "node", self.node, "--subresource=status", "--type=json", f"--patch={json.dumps(patch)}")

    def import_image(self, archive: Path) -> None:
        """Give the node an image; a pod names it with `imagePullPolicy: Never`.

        Raises `ClusterError` on a cluster that this package did not start: only its owner can reach its nodes.
        """
        socket = self.kubeconfig.parent / SOCKET_NAME
        if not socket.exists():
            raise ClusterError(f"the tests did not start this cluster, load {archive.name} into its nodes yourself")
        import_image(socket, archive)

    def name_image(self, image: str, name: str) -> None:
        """Give an image that the node was given one more name."""
        name_image(self.kubeconfig.parent / SOCKET_NAME, image, name)
