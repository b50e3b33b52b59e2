"""The test cluster is a real one, runs pods as a real one does, and goes without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client

from cluster.build import binaries
from cluster.errors import ForeignClusterError, KubectlError
from cluster.given import given_cluster
from cluster.image import archive_from_files
from cluster.node import mark_of
from cluster.run import down, end_abandoned, session_directory, up
from cluster.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

IMAGE = "localhost/pod:test"
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def image(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    archive = tmp_path_factory.mktemp("image") / "pod.tar"
    archive_from_files(archive, name=IMAGE, files={"/pod": binaries().pod}, entrypoint=["/pod"])
    node_cluster.import_image(archive)
    return IMAGE


def job(name: str, image: str, *arguments: str, **resources: str) -> dict[str, Any]:
    """A Job as the operator makes them: one attempt, and as few rights as pod security's strictest level asks."""
    container = {
        "name": "runner",
        "image": image,
        "imagePullPolicy": "Never",
        "args": arguments,
        "resources": {"limits": resources, "requests": resources},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1234, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": template},
    }


def ended_pod(cluster: Cluster, name: str) -> Any:
    """Wait until the Job's pod has ended, and return it."""

    def found() -> Any:
        pods = cluster.get("pods", f"--selector=app={name}")["items"]
        return next((pod for pod in pods if pod["status"]["phase"] in {"Succeeded", "Failed"}), None)

    wait_until(found, what=f"the end of {name}")
    return found()


def test_the_server_is_the_version_that_go_mod_asks_for(control_plane: Cluster) -> None:
    version = json.loads(control_plane.kubectl("version", "--output=json").stdout)

    assert version["serverVersion"]["gitVersion"] == "v1.37.1"
    assert version["clientVersion"]["gitVersion"] == "v1.37.1"


def test_the_python_client_is_an_administrator(control_plane: Cluster) -> None:
    asked = {"spec": {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}}
    with control_plane.client() as api:
        review = client.AuthorizationV1Api(api).create_self_subject_access_review(asked)

    assert review.status.allowed


def test_a_command_that_fails_says_what_kubectl_said(cluster: Cluster) -> None:
    with pytest.raises(KubectlError, match='pods "absent" not found'):
        cluster.kubectl("get", "pod", "absent")


def test_controllers_run_so_a_job_gets_its_pod(cluster: Cluster) -> None:
    cluster.apply(job("waiting", "localhost/absent:1"))

    wait_until(lambda: cluster.get("pods", "--selector=app=waiting")["items"], what="the Job's pod")
    (pod,) = cluster.get("pods", "--selector=app=waiting")["items"]
    assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"


def test_a_cluster_with_namespaces_of_others_is_refused(
    control_plane: Cluster, monkeypatch: pytest.MonkeyPatch, others_namespace: str
) -> None:
    monkeypatch.setenv("ACCELBENCH_TEST_KUBECONFIG", str(control_plane.kubeconfig))

    with pytest.raises(ForeignClusterError, match=others_namespace):
        given_cluster()

    monkeypatch.setenv("ACCELBENCH_TEST_KUBECONFIG_CONFIRM", "accelbench-tests")
    given = given_cluster()
    assert given is not None
    assert given.server == control_plane.server


@pytest.fixture
def others_namespace(control_plane: Cluster) -> Iterator[str]:
    control_plane.kubectl("create", "namespace", "payments")
    yield "payments"
    control_plane.kubectl("delete", "namespace", "payments")


@pytest.mark.node
def test_a_restricted_job_runs_and_its_log_and_message_come_back(cluster: Cluster, image: str) -> None:
    cluster.apply(job("restricted", image, "report", cpu="100m", memory="32Mi"))

    pod = ended_pod(cluster, "restricted")

    assert pod["status"]["phase"] == "Succeeded"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] == "reported"
    with cluster.client() as api:
        log = client.CoreV1Api(api).read_namespaced_pod_log(pod["metadata"]["name"], cluster.namespace)
    assert log == "uid 1234 gid 0\n"


@pytest.mark.node
def test_a_container_above_its_memory_limit_is_killed(cluster: Cluster, image: str) -> None:
    cluster.apply(job("greedy", image, "allocate", "256", memory="64Mi"))

    ended = ended_pod(cluster, "greedy")["status"]["containerStatuses"][0]["state"]["terminated"]

    assert ended["reason"] == "OOMKilled"


@pytest.mark.node
def test_a_child_that_is_killed_for_memory_marks_a_container_even_where_it_survives(
    cluster: Cluster, image: str
) -> None:
    cluster.apply(job("supervisor", image, "allocate-in-child", "256", memory="64Mi"))

    ended = ended_pod(cluster, "supervisor")["status"]["containerStatuses"][0]["state"]["terminated"]

    # Control groups v1 kill the child alone and the container succeeds, v2 kill all of it; both give the same reason.
    assert ended["reason"] == "OOMKilled"
    assert (ended["exitCode"], ended["message"]) in {
        (0, "child ended: signal: killed"),
        (137, "child is about to allocate"),
    }


@pytest.mark.node
def test_accelerators_that_are_not_there_are_scheduled_by_their_count(cluster: Cluster, image: str) -> None:
    cluster.offer({"example.com/gpu": 4})

    fits, too_many = {"example.com/gpu": "4"}, {"example.com/gpu": "5"}
    cluster.apply(job("fits", image, "report", **fits), job("too-many", image, "report", **too_many))

    assert ended_pod(cluster, "fits")["status"]["phase"] == "Succeeded"

    def refusal() -> str:
        (pod,) = cluster.get("pods", "--selector=app=too-many")["items"]
        return "".join(each.get("message", "") for each in pod["status"].get("conditions", ()))

    wait_until(lambda: "Insufficient example.com/gpu" in refusal(), what="the scheduler's refusal")


@pytest.mark.node
def test_a_cluster_that_is_taken_down_leaves_nothing(tmp_path: Path) -> None:
    directory = session_directory()
    cluster, processes = up(directory, node=True, die_with_parent=True)
    archive = archive_from_files(tmp_path / "pod.tar", name=IMAGE, files={"/pod": binaries().pod}, entrypoint=["/pod"])
    cluster.import_image(archive)
    cluster.apply(job("running", IMAGE, "pause", memory="32Mi"))
    wait_until(
        lambda: any(pod["status"]["phase"] == "Running" for pod in cluster.get("pods")["items"]), what="a pod to run"
    )
    assert {trace.split()[0] for trace in traces(directory)} == {"process", "interface", "group", "file"}

    down(directory)
    down(directory)
    processes.reap()

    assert traces(directory) == set()


@pytest.mark.node
def test_a_cluster_whose_owner_was_killed_is_cleared_away_by_the_next() -> None:
    owner = (
        "import signal; from cluster.run import session_directory, up\n"
        "directory = session_directory(); up(directory, node=True, die_with_parent=True)\n"
        "print(directory, flush=True); signal.pause()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        assert (directory / "kubeconfig").exists()
        process.send_signal(signal.SIGKILL)
        process.wait()

    end_abandoned()

    assert traces(directory) == set()


def traces(directory: Path) -> set[str]:
    """Return what the cluster of this directory has on the machine at this moment."""
    mark = mark_of(directory)
    found = {f"file {path}" for path in directory.parent.glob(f"{directory.name}*")}
    found |= {f"interface {path.name}" for path in Path("/sys/class/net").iterdir() if path.name == mark}
    found |= {f"group {path}" for path in Path("/sys/fs/cgroup").glob(f"**/{mark}")}
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found |= {f"mount {line}" for line in mounts if str(directory) in line or mark in line}
    for process in Path("/proc").glob("[0-9]*"):
        # Any process may end while it is looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # A component names the directory in its arguments, a container runs in the node's control group.
            command = (process / "cmdline").read_text().replace("\0", " ")
            if str(directory) in command or mark in (process / "cgroup").read_text():
                found.add(f"process {process.name} {command}")
    return found
