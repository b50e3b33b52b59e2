"""`kubectl accelbench` as a user starts it: a process of its own, with an account that may edit one namespace."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chart.helm import render
from cluster.cluster import Cluster
from cluster.wait import HANG_SECONDS

ROOT = Path(__file__).parents[2]
START = [sys.executable, "-c", "from accelbench.kubectl.main import main; main()"]
GROUP = "rbac.authorization.k8s.io"
ROLES = ("aggregate-to-edit", "aggregate-to-view")

MANIFEST = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: NAME}
spec:
  workload: {name: matmul-chain, parameters: {size: 64, length: 4}}
  variants: [{use: pytorch/eager}, {use: jax/jit}]
  measurement: {rounds: {min: 3, max: 3}, timeLimitSeconds: 60}
"""


def manifest(name: str = "chain", more: str = "") -> str:
    return MANIFEST.replace("NAME", name) + more


@dataclass(frozen=True)
class User:
    """Represent a user with a kubeconfig; `plugin` runs to its end, `started` runs in the background."""

    kubeconfig: Path
    name: str

    def environment(self, **more: str) -> dict[str, str]:
        """Return an environment without colour or width of the test's own terminal."""
        kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}}
        return {**kept, "KUBECONFIG": str(self.kubeconfig), **more}

    def plugin(self, *arguments: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*START, *arguments],
            input=given,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )

    @contextmanager
    def started(self, *arguments: str, given: str = "", **more: str) -> Iterator["Started"]:
        with subprocess.Popen(
            [*START, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(**more),
        ) as process:
            assert process.stdin is not None
            process.stdin.write(given)
            process.stdin.close()
            process.stdin = None
            try:
                yield Started(process)
            finally:
                process.kill()

    @contextmanager
    def on_a_terminal(self, *arguments: str, columns: int) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
        """Standard output and error are one terminal; what it shows is read from the descriptor."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [*START, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env=self.environment(COLUMNS=str(columns), LINES="40", TERM="xterm-256color"),
        ) as process:
            os.close(theirs)
            try:
                yield process, ours
            finally:
                process.kill()
                os.close(ours)


@dataclass
class Started:
    """Represent a running process, and its standard error so far."""

    process: subprocess.Popen[str]
    stderr: str = ""

    def wait_for(self, words: str) -> str:
        """Read standard error until it has these words; whatever comes first, the end included, is in the message."""
        assert self.process.stderr is not None
        while words not in self.stderr:
            line = self.process.stderr.readline()
            assert line, f"ended without {words!r}: {self.stderr}"
            self.stderr += line
        return self.stderr

    def end(self) -> tuple[int, str, str]:
        """Return exit code, standard output and all of standard error at the end."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        patience = threading.Timer(120, self.process.kill)
        patience.start()
        # Not `communicate`: it passes over what the streams have read ahead.
        with ThreadPoolExecutor() as pool:
            out, rest = pool.map(lambda stream: stream.read(), (self.process.stdout, self.process.stderr))
        code = self.process.wait()
        patience.cancel()
        return code, out, self.stderr + rest


def user(cluster: Cluster, directory: Path, *roles: str, name: str = "jane") -> User:
    """An account with roles in the cluster's namespace: Kubernetes' own, as the chart adds to them, or the chart's."""
    manifests = render({"rbac": {"aggregate": True}})
    added = [each for each in manifests if any(role in str(each["metadata"].get("labels")) for role in ROLES)]
    for each in added:
        # Under names of their own: they are the whole cluster's, and a release may be installed into it later.
        each["metadata"]["name"] = each["metadata"]["name"].replace("accelbench-", "accelbench-users-")
    cluster.apply(
        *added,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
        *(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": f"{name}-{role}"},
                "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}],
            }
            for role in roles
        ),
    )
    token = cluster.kubectl("create", "token", name, "--duration=1h").stdout.strip()
    config: Any = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "--output=json").stdout)
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = cluster.namespace
    path = directory / f"{name}.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return User(path, name)
