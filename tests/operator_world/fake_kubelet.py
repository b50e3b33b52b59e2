"""A node without a kubelet: pods are bound to it and end as the test says, and their logs are served as a kubelet does.

The API server fetches a log from the node's address, so what the operator reads has come all the way.
"""

import datetime as dt
import http.server
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from kubernetes import client

from accelbench.api import labels
from accelbench.api.case import Case
from cluster.cluster import Cluster

NODE = "accelbench-fake"


IMAGE_ID = f"registry.example/runner@sha256:{'0' * 64}"


class FakeKubelet:
    """Simulate one node. Use as a context manager."""

    def __init__(self, cluster: Cluster, directory: Path, name: str = NODE) -> None:
        self._name = name
        self.logs: dict[str, str] = {}
        """By pod."""
        self.ended: set[str] = set()
        """Pods whose log is whole."""
        self.unknown: set[str] = set()
        """Pods whose log was asked for before there was one."""
        self.written = threading.Condition()
        self._api = client.CoreV1Api(cluster.client())
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                # /containerLogs/NAMESPACE/POD/CONTAINER?...
                path, _, query = self.path.partition("?")
                pod = path.split("/")[3]
                content = kubelet.logs.get(pod)
                if content is None:
                    kubelet.unknown.add(pod)
                self.send_response(200 if content is not None else 404)
                self.end_headers()
                self.wfile.write((content or "no such container").encode())
                if content is not None and "follow=true" in query:
                    self.follow(pod, len(content))

            def follow(self, pod: str, told: int) -> None:
                while True:
                    with kubelet.written:
                        while len(kubelet.logs[pod]) <= told and pod not in kubelet.ended:
                            kubelet.written.wait()
                        more, over = kubelet.logs[pod][told:], pod in kubelet.ended
                    self.wfile.write(more.encode())
                    self.wfile.flush()
                    told += len(more)
                    if over:
                        return

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(write_certificate(directory))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        node = {"metadata": {"name": self._name, "labels": {"kubernetes.io/os": "linux"}}}
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._server.server_address[1]}},
        }
        self._api.create_node(node)
        self._api.patch_node_status(self._name, {"status": status})
        return self

    def __exit__(self, *_: object) -> None:
        self._api.delete_node(self._name)
        self._api.api_client.close()
        self._server.shutdown()
        self._server.server_close()

    def offer(self, **resources: str) -> None:
        """Have the scheduler place pods here; `cpu`, `memory` and disk are plenty."""
        amounts = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "100Gi", "pods": "110"} | resources
        ready = {"type": "Ready", "status": "True", "reason": "Played", "message": "", "lastHeartbeatTime": _now()}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        self._api.patch_node_status(self._name, {"status": status})

    def pods(self, namespace: str) -> list[Any]:
        """Return the runner pods of a namespace."""
        return self._api.list_namespaced_pod(namespace, label_selector=labels.RUN_UID).items

    def case_of(self, pod: Any) -> Case:
        """Return the case document in the pod."""
        return Case.model_validate_json(pod.metadata.annotations[labels.CASE_ANNOTATION])

    def start(self, pod: Any, ago: dt.timedelta = dt.timedelta()) -> None:
        """Bind the pod to the node, and let its container run, since this long ago."""
        self._bind(pod)
        self._report(pod, "Running", {"running": {"startedAt": _now(ago)}}, ago)

    def hold(self, pod: Any, reason: str, message: str) -> None:
        """Bind the pod to the node, and have its container wait."""
        self._bind(pod)
        self._report(pod, "Pending", {"waiting": {"reason": reason, "message": message}}, dt.timedelta())

    def evict(self, pod: Any, reason: str, message: str, disruption: str = "") -> None:
        """Have the node end the pod, with its container; `disruption` is the reason of its DisruptionTarget."""
        now = _now()
        state = {"exitCode": 137, "reason": "Error", "startedAt": now, "finishedAt": now}
        condition = {"type": "DisruptionTarget", "status": "True", "reason": disruption, "message": message}
        more = {"reason": reason, "message": message, "conditions": [condition] if disruption else []}
        self._report(pod, "Failed", {"terminated": state}, dt.timedelta(), more=more)

    def _bind(self, pod: Any) -> None:
        namespace, name = pod.metadata.namespace, pod.metadata.name
        if not pod.spec.node_name:
            target = {"apiVersion": "v1", "kind": "Node", "name": self._name}
            binding = {"metadata": {"name": name}, "target": target}
            self._api.create_namespaced_binding(namespace, binding, _preload_content=False)
            pod.spec.node_name = self._name

    def write(self, pod: Any, text: str) -> None:
        """Have the container write that to its log."""
        with self.written:
            name = pod.metadata.name
            self.logs[name] = self.logs.get(name, "") + text
            self.written.notify_all()

    def end(
        self,
        pod: Any,
        *,
        log: str | None,
        message: str,
        exit_code: int = 0,
        reason: str = "Completed",
        ago: dt.timedelta = dt.timedelta(),
        sidecar: str = "",
    ) -> None:
        """Have the container end; so long ago, as it began. A `sidecar` runs on."""
        with self.written:
            if log is not None:
                self.logs[pod.metadata.name] = log
            self.ended.add(pod.metadata.name)
            self.written.notify_all()
        state = {"exitCode": exit_code, "reason": reason, "message": message}
        state |= {"startedAt": _now(ago), "finishedAt": _now(ago)}
        phase = "Failed" if exit_code else "Succeeded"
        self._report(pod, "Running" if sidecar else phase, {"terminated": state}, ago, sidecar)

    def is_being_deleted(self, pod: Any) -> bool:
        """Return whether the pod is being deleted."""
        return any(
            found.metadata.uid == pod.metadata.uid and found.metadata.deletion_timestamp is not None
            for found in self.pods(pod.metadata.namespace)
        )

    def remove(self, pod: Any) -> None:
        """Let the pod go, as a kubelet does once its container has ended."""
        self._api.delete_namespaced_pod(pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0)

    def _report(
        self,
        pod: Any,
        phase: str,
        state: dict[str, Any],
        ago: dt.timedelta,
        sidecar: str = "",
        more: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        container = {
            "name": "runner",
            "image": pod.spec.containers[0].image,
            "imageID": IMAGE_ID,
            "ready": False,
            "restartCount": 0,
            "state": state,
        }
        others = [container | {"name": sidecar, "state": {"running": {"startedAt": _now(ago)}}}] if sidecar else []
        status = {"phase": phase, "startTime": _now(ago), "containerStatuses": [*others, container], **more}
        self._api.patch_namespaced_pod_status(pod.metadata.name, pod.metadata.namespace, {"status": status})


def _now(ago: dt.timedelta = dt.timedelta()) -> str:
    return (dt.datetime.now(dt.UTC) - ago).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_certificate(directory: Path) -> Path:
    """Write certificate and key of a node into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NODE)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = directory / "kubelet.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path
