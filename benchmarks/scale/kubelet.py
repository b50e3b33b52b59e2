"""Simulate the nodes of a thousand pods at once: they accept scheduled pods and serve real logs.

A pod's log and termination message are those of a real run of the same workload, with this pod's case inserted.
"""

import asyncio
import datetime as dt
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from aiohttp import web

from accelbench.api import labels
from accelbench.api.profiles import OS_LABEL
from accelbench.api.result import SpeedupEstimate
from accelbench.delivery.log import Headline, digest_of, encode_document
from operator_world.client import Client, Manifest

NODES = 10
PODS_A_NODE = 2_000
HEARTBEAT_SECONDS = 10
LAUNCH_LINES = 40
"""Lines of launch documents in a log, which the operator skips: as many as fifteen real launches write."""


class Kubelet:
    """Simulate all nodes. Use as an async context manager; `hold` keeps containers running until `release`."""

    def __init__(self, client: Client, certificate: Path, result: Manifest) -> None:
        """Store what the simulated nodes need.

        Args:
            client: A client of the API server.
            certificate: The file with the nodes' TLS certificate and key.
            result: The result of a real run, which every pod reports for its own case.
        """
        self._client = client
        self._certificate = certificate
        self._result = result
        self._first_lines = list(_lines_before_result(result))
        self._logs: dict[str, str] = {}
        self._held = ""
        self.logs_of: dict[str, str] = {}
        """Logs that have no result, by the beginning of their run's name."""
        self._go = asyncio.Event()
        self._go.set()
        self._turns: asyncio.Queue[None] | None = None
        self.running = 0
        self._started = asyncio.Event()

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._serve_log)
        self._server = web.AppRunner(application, access_log=None)
        await self._server.setup()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        site = web.TCPSite(self._server, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = self._server.addresses[0][1]
        for number in range(NODES):
            await self._join(f"node-{number}", port)
        self._tasks = [asyncio.create_task(task) for task in (self._beat(), self._follow())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.cleanup()

    def hold(self, prefix: str = "") -> None:
        """Keep containers running that start from now on, of runs whose name begins with `prefix`."""
        self._held = prefix
        self._go.clear()

    async def until_running(self, count: int) -> None:
        """Wait until this many containers run."""
        while self.running < count:
            self._started.clear()
            await self._started.wait()

    async def release(self, a_second: float | None = None) -> None:
        """End the running containers, all at once or so many a second."""
        self._turns = asyncio.Queue() if a_second else None
        self._go.set()
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(self.running if a_second else 0):
            await asyncio.sleep(max(0.0, began + number / (a_second or 1) - loop.time()))
            self._turns.put_nowait(None)  # type: ignore[union-attr]
        self._turns = None

    async def _join(self, name: str, port: int) -> None:
        """Register a node that is ready, with its Lease; logs are served at `port`."""
        await self._client.create("/api/v1/nodes", {"metadata": {"name": name, "labels": {OS_LABEL: "linux"}}})
        amounts = {"cpu": str(PODS_A_NODE), "memory": f"{4 * PODS_A_NODE}Gi", "pods": str(PODS_A_NODE)}
        amounts["ephemeral-storage"] = "1000Ti"
        now = _now()
        ready = {"type": "Ready", "status": "True", "reason": "Played", "message": "", "lastHeartbeatTime": now}
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready | {"lastTransitionTime": now}],
        }
        await self._client.patch(f"/api/v1/nodes/{name}/status", {"status": status})
        lease = {"metadata": {"name": name}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}
        await self._client.create(f"{LEASES}", lease)

    async def _beat(self) -> None:
        """Renew the Leases of all nodes for ever."""
        while True:
            for number in range(NODES):
                moment = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                await self._client.patch(f"{LEASES}/node-{number}", {"spec": {"renewTime": moment}})
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _follow(self) -> None:
        """Run each new pod that is scheduled on a node; forget the logs of deleted pods."""
        seen: set[str] = set()
        async with asyncio.TaskGroup() as group:
            async for kind, pod in self._client.follow("/api/v1/pods", fieldSelector="spec.nodeName!="):
                if kind == "DELETED":
                    self._logs.pop(pod["metadata"]["name"], None)
                    seen.discard(pod["metadata"]["uid"])
                elif kind in {"ADDED", "MODIFIED"} and pod["metadata"]["uid"] not in seen:
                    seen.add(pod["metadata"]["uid"])
                    if pod["status"]["phase"] == "Pending":
                        group.create_task(self._play(pod))

    async def _play(self, pod: Manifest) -> None:
        """Start a pod's container, wait if it is held, and end it with its log and termination message."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        image = pod["spec"]["containers"][0]["image"]
        container = {"name": "runner", "image": image, "imageID": f"{image}@sha256:{'0' * 64}"}
        container |= {"ready": False, "restartCount": 0}
        started = _now()
        state: Manifest = {"running": {"startedAt": started}}
        status = {"phase": "Running", "startTime": started, "containerStatuses": [container | {"state": state}]}
        await self._client.patch(path, {"status": status})
        self.running += 1
        self._started.set()
        if metadata["labels"][labels.RUN].startswith(self._held):
            await self._go.wait()
        if self._turns:
            await self._turns.get()
        log, message = self._log_and_message(metadata)
        self._logs[metadata["name"]] = log
        state = {"exitCode": 0, "reason": "Completed", "message": message, "startedAt": started, "finishedAt": _now()}
        status = {"phase": "Succeeded", "containerStatuses": [container | {"state": {"terminated": state}}]}
        await self._client.patch(path, {"status": status})
        self.running -= 1

    def _log_and_message(self, metadata: Manifest) -> tuple[str, str]:
        """Return the log and the termination message of this pod's case."""
        for prefix, log in self.logs_of.items():
            if metadata["labels"][labels.RUN].startswith(prefix):
                return log, ""
        case = json.loads(metadata["annotations"][labels.CASE_ANNOTATION])
        text = json.dumps(self._result | {"case": case})
        lines = [*self._first_lines, *encode_document("result", "1", text)]
        fields = ("variant", "verdict", "speedup", "lower", "upper")
        estimates = [
            SpeedupEstimate(**{name: comparison.get(name) for name in fields})
            for comparison in self._result["comparisons"]
        ]
        headline = Headline(
            case=case["name"],
            attempt=case["origin"]["attempt"],
            state="finished",
            round=self._result["rounds"],
            digest=digest_of(text),
            comparisons=tuple(estimates),
        )
        return "\n".join([*lines, ""]), headline.to_message()

    async def _serve_log(self, request: web.Request) -> web.Response:
        """Answer the API server's request for a container's log."""
        log = self._logs.get(request.match_info["pod"])
        return web.Response(text="no such container", status=404) if log is None else web.Response(text=log)


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def _lines_before_result(result: Manifest) -> Iterator[str]:
    """Yield the lines of a log before its result; they are the same in all logs."""
    for number in range(LAUNCH_LINES):
        yield f"accelbench/1 launch {number} 1/2 {'0' * 64} {'A' * 7800}"
    for number in range(1, result["rounds"] + 1):
        yield from encode_document("checkpoint", str(number), json.dumps(result))


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
