"""The operator as it runs: a process of its own, with a service account that may do what `rbac` says and no more."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType

from kubernetes import client

from accelbench_operator.rbac import LEASE, RULES
from cluster.cluster import Cluster
from cluster.errors import ToolMissingError
from cluster.ports import free_port
from cluster.wait import HANG_SECONDS, NEEDED

ACCOUNT = "accelbench-operator"


class OperatorProcess:
    """Starts, kills and starts again one operator that serves the cluster's namespace."""

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        *,
        class_name: str = "",
        lease: str = "",
        profiles: str = "",
        command: Sequence[str] = ("-m", "accelbench_operator"),
        environment: Mapping[str, str] = MappingProxyType({}),
        server: str = "",
    ) -> None:
        """`lease` is the name of the one that it shares with other replicas, in the cluster's namespace.

        `profiles` are an administrator's, as YAML. `command` is what Python is given, `environment` what it has too.
        `server` is where it looks for the API server; empty: where that is.
        """
        self._command = command
        self._environment = environment
        self._server = server
        directory.mkdir(exist_ok=True)
        self._cluster = cluster
        self._class_name = class_name
        self._lease = f"{cluster.namespace}/{lease}" if lease else ""
        self._profiles = directory / "profiles.yaml"
        self._profiles.write_text(profiles)
        self._log = directory / "operator.log"
        self.kubeconfig = directory / "operator.kubeconfig"
        self.metrics_port, self.health_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._grant()

    def start(self, clock: str = "") -> None:
        """`clock` is how wrong its machine's is, as libfaketime says it: `+20m`."""
        environment = self._surroundings() | (_wrong_by(clock) if clock else {})
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([sys.executable, *self._command], env=environment, stdout=log, stderr=log)
        NEEDED[self._process] = self.log

    def _surroundings(self) -> dict[str, str]:
        """Return the environment of the process."""
        return {
            "PATH": os.environ["PATH"],
            **{name: value for name, value in os.environ.items() if name.startswith("COV")},
            "HOME": str(self._log.parent),
            "KUBECONFIG": str(self.kubeconfig),
            "ACCELBENCH_RUNNER_IMAGE": "accelbench-runner:test",
            "ACCELBENCH_PROFILES": str(self._profiles),
            "ACCELBENCH_NAMESPACES": self._cluster.namespace,
            "ACCELBENCH_CLASS_NAME": self._class_name,
            "ACCELBENCH_LEASE": self._lease,
            "ACCELBENCH_METRICS_PORT": str(self.metrics_port),
            "ACCELBENCH_HEALTH_PORT": str(self.health_port),
            **self._environment,
        }

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it as a node that loses power does."""
        assert self._process is not None
        NEEDED.pop(self._process, None)
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Have it stand still, as a node does that swaps or is migrated."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on, as if no time had passed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    @property
    def leads(self) -> bool:
        """Return whether it leads according to its metrics; False without an answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5) as response:
                return b"accelbench_operator_leading 1.0" in response.read()
        except OSError:
            return False

    @property
    def is_ready(self) -> bool:
        """Return whether its probe reports it as ready; False without an answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}/readyz", timeout=5):
                return True
        except OSError:
            return False

    def terminate(self) -> int:
        """Terminate it as a kubelet does; return the exit code."""
        if self._process is None:
            return 0
        NEEDED.pop(self._process, None)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self._process.wait(HANG_SECONDS)

    def log(self) -> str:
        return self._log.read_text()

    def _grant(self) -> None:
        # Not by kubectl, which takes a processor a fifth of a second a call: the crash harness starts hundreds.
        namespace = self._cluster.namespace
        group, about = "rbac.authorization.k8s.io", {"metadata": {"name": ACCOUNT}}
        rules = [rule.to_manifest() for rule in (*RULES, LEASE)]
        reference = {"apiGroup": group, "kind": "Role", "name": ACCOUNT}
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}
        with self._cluster.client() as api:
            core, access = client.CoreV1Api(api), client.RbacAuthorizationV1Api(api)
            for create, body in (
                (core.create_namespaced_service_account, about),
                (access.create_namespaced_role, about | {"rules": rules}),
                (access.create_namespaced_role_binding, about | {"roleRef": reference, "subjects": [subject]}),
            ):
                try:
                    create(namespace, body)
                except client.ApiException as error:
                    if error.status != HTTPStatus.CONFLICT:  # another replica has it already
                        raise
            asked = {"spec": {"expirationSeconds": 3600, "audiences": []}}
            token = core.create_namespaced_service_account_token(ACCOUNT, namespace, asked).status.token
        config = json.loads(_config_in(self._cluster.kubeconfig, self._cluster.kubectl_program))
        config["users"][0]["user"] = {"token": token}
        if self._server:
            config["clusters"][0]["cluster"] = {"server": self._server}
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(json.dumps(config))


@cache
def _config_in(kubeconfig: Path, kubectl: Path) -> str:
    arguments = ("config", "view", "--raw", "--minify", "--output=json")
    return subprocess.check_output([kubectl, f"--kubeconfig={kubeconfig}", *arguments], text=True)


def _wrong_by(clock: str) -> dict[str, str]:
    """Return the environment of a process whose clock is wrong."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        raise ToolMissingError("a clock that is wrong needs libfaketime (Debian: libfaketime)")
    # Timers run on the monotonic clock, which nobody sets.
    return {"LD_PRELOAD": str(library), "FAKETIME": clock, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
