"""A user who may edit a namespace reads lists, logs, reports, comparisons and profiles of its runs."""

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from accelbench.api import labels
from accelbench.api.result import BenchmarkResult
from accelbench.delivery.log import LaunchFinished, encode_event
from accelbench.local.exits import Exit
from cli.command import accelbench
from cluster.cluster import Cluster
from cluster.errors import ToolMissingError
from cluster.wait import wait_until
from history.runs import run as measured
from kubectl.plugin import START, User, manifest, user
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess
from operator_world.steps import apply, condition, next_pod, succeed

pytestmark = pytest.mark.slow


def measure(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, name: str = "chain", **spec: Any
) -> None:
    apply(cluster, name=name, **spec)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_until(lambda: condition(cluster, "Finished", name).get("status") == "True", what=f"{name} to finish")


def test_a_list_has_the_columns_of_kubectl_get(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    assert jane.plugin("ls").stderr == f"no BenchmarkRuns in namespace {cluster.namespace}\n"
    measure(cluster, kubelet, operator)
    heads, row = jane.plugin("ls").stdout.splitlines()
    assert heads.split() == cluster.kubectl("get", "bmr").stdout.splitlines()[0].split()
    assert row.startswith("chain")
    assert "jax/jit faster 2.00x (1.90 to 2.10)" in row
    wide = jane.plugin("ls", "-o", "wide").stdout
    assert "SERIES" in wide
    assert condition(cluster, "Finished", "chain")["message"] in wide
    assert jane.plugin("ls", "-o", "name").stdout == "benchmarkrun.accelbench.dev/chain\n"
    (item,) = json.loads(jane.plugin("ls", "-o", "json").stdout)["items"]
    assert item["status"]["phase"] == "Succeeded"
    everywhere = jane.plugin("ls", "-A")
    assert (everywhere.returncode, everywhere.stdout) == (Exit.USAGE, "")
    absent = jane.plugin("ls", "--context", "accelbench-test")
    assert (absent.returncode, "did you mean accelbench-tests?" in absent.stderr) == (Exit.USAGE, True)


def test_a_watched_list_prints_what_changes(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    with jane.started("ls", "-w") as watching:
        assert watching.process.stdout is not None
        assert watching.process.stdout.readline().startswith("NAME")
        measure(cluster, kubelet, operator)
        line = ""
        while "Succeeded" not in line:
            line = watching.process.stdout.readline()
            assert line
    assert "faster" in line


def until(screen: int, words: str = "") -> str:
    """Return the terminal's text when it has these words, or at its end."""
    shown = ""
    while not words or words not in shown:
        try:
            shown += os.read(screen, 65536).decode(errors="replace")
        except OSError:  # Linux' way to say that nobody holds the other end any more
            assert not words, shown
            break
    return shown


def record(title: str, shown: str) -> None:
    """Write the output for a person to look at, if SHOWN names a file."""
    if "SHOWN" in os.environ:
        with Path(os.environ["SHOWN"]).open("a") as file:
            file.write(f"=== {title}\n{shown}\n")


@pytest.mark.parametrize("columns", [80, 120])
def test_a_list_on_a_terminal_fits_it(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, columns: int
) -> None:
    measure(cluster, kubelet, operator)
    with jane.on_a_terminal("ls", columns=columns) as (process, screen):
        shown = until(screen)
        process.wait(60)
    record(f"{columns} columns", shown)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).splitlines()
    assert max(map(len, map(str.rstrip, lines))) <= columns
    assert "faster" in " ".join(lines)


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_shows_the_live_display_of_the_running_case(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, tmp_path: Path, columns: int
) -> None:
    file = tmp_path / "chain.yaml"
    file.write_text(manifest())
    with jane.on_a_terminal("run", "-f", str(file), columns=columns) as (process, screen):
        pod = next_pod(kubelet, cluster)
        kubelet.start(pod)
        event = LaunchFinished(variant="pytorch/eager", round=1, wall_seconds="2.5")
        kubelet.write(pod, f"{encode_event(event)}\n")
        shown = until(screen, "round 1 of 3")
        succeed(kubelet, pod)
        shown += until(screen)
        assert process.wait(60) == Exit.SUCCESS
    record(f"{columns} columns", shown)
    assert "\x1b[" in shown
    assert "faster" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert max(len(line.rstrip()) for line in re.split(r"[\r\n]+", plain) if "benchmarkrun/" not in line) <= columns


def test_logs_are_readable_sentences_and_end_with_their_pod(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster, sizes=(64, 128))
    pod = next_pod(kubelet, cluster)
    kubelet.start(pod)
    with jane.started("logs", "chain", "-f") as logs:
        logs.wait_for(pod.metadata.name)
        event = LaunchFinished(variant="pytorch/eager", round=1, wall_seconds="2.5")
        kubelet.write(pod, f"a library's word\n{encode_event(event)}\n")
        assert logs.process.stdout is not None
        assert logs.process.stdout.readline() == "a library's word\n"
        assert logs.process.stdout.readline() == "round 1: pytorch/eager: measured (2.5 s)\n"
        succeed(kubelet, pod)
        code, out, _ = logs.end()
    assert (code, "accelbench/1" in out) == (0, False)
    first, other = (each.name for each in [kubelet.case_of(pod), kubelet.case_of(next_pod(kubelet, cluster))])
    wrong = jane.plugin("logs", "chain", "--case", other[:-1])
    assert (wrong.returncode, f"did you mean {other}?" in wrong.stderr) == (Exit.USAGE, True)
    waiting = jane.plugin("logs", "chain", "--case", other)
    assert (waiting.returncode, "1 of 2 cases done" in waiting.stderr) == (Exit.USAGE, True)
    wait_until(lambda: len(kubelet.pods(cluster.namespace)) == 1, what="the Job of the first case to be deleted")
    gone = jane.plugin("logs", "chain", "--case", first)
    assert (gone.returncode, first in gone.stderr) == (Exit.USAGE, True)


def test_a_report_equals_that_of_the_file_and_is_available_after_the_run_is_deleted(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, tmp_path: Path
) -> None:
    measure(cluster, kubelet, operator, expectations=[{"metric": "speedup", "variant": "jax/jit", "atLeast": "3"}])
    (tmp_path / "results.json").write_text(cluster.kubectl("get", "bmres", "-o", "json").stdout)
    table = jane.plugin("report", "chain").stdout
    assert "✗ speedup of jax/jit at least 3: not-met" in table
    of_file = accelbench("report", "results.json", "-o", "markdown", cwd=tmp_path).stdout
    markdown = jane.plugin("report", "chain", "-o", "markdown").stdout
    assert set(of_file.splitlines()) <= set(markdown.splitlines())
    page = jane.plugin("report", "chain", "-o", "html").stdout
    assert page.startswith("<!doctype html>")
    assert "expectations:" in page  # the manifest, to measure it again
    document = json.loads(jane.plugin("report", "chain", "-o", "json").stdout)
    assert (document["run"]["exitCode"], document["run"]["run"]["metadata"]["name"]) == (6, "chain")
    cluster.kubectl("delete", "bmr", "chain", "--cascade=foreground")
    assert jane.plugin("report", "chain").stdout == table
    for odd in ("", "chain?watch=1", "../pods"):
        assert (jane.plugin("report", odd).returncode, jane.plugin("rerun", odd).returncode) == (Exit.USAGE, Exit.USAGE)
    wrong = jane.plugin("report", "chan")
    assert (wrong.returncode, "did you mean chain?" in wrong.stderr) == (Exit.USAGE, True)


def store(cluster: Cluster, name: str, number: int, series: str = "nightly") -> None:
    """Store a result as the operator does, of a run that was deleted."""
    result = measured(day=number)
    origin = result.case.origin.model_copy(update={"run": name, "series": series, "uid": f"uid-{number}"})
    result = result.model_copy(update={"case": result.case.model_copy(update={"origin": origin})})
    marks = {labels.RUN: name, labels.SERIES: series, labels.RUN_UID: f"uid-{number}", labels.CASE: "all"}
    stored = BenchmarkResult.from_result(result, {"name": f"{name}-{number}", "labels": marks})
    cluster.apply(json.loads(stored.to_json()))


def test_runs_and_series_are_compared_as_files_are(jane: User, cluster: Cluster) -> None:
    for number in range(1, 4):
        store(cluster, f"night-{number}", number)
    done = jane.plugin("compare", "night-1", "night-2")
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "night-2" in done.stdout
    series = json.loads(jane.plugin("compare", "night-1", "series/nightly", "-o", "json").stdout)
    assert (series["before"]["results"], series["after"]["results"]) == (1, 3)
    wrong = jane.plugin("compare", "night-1", "series/nigthly")
    assert (wrong.returncode, "did you mean nightly?" in wrong.stderr) == (Exit.USAGE, True)
    assert "did you mean night-" in jane.plugin("compare", "night-1", "nigt-2").stderr


def test_a_user_with_the_view_role_reads_everything_and_starts_nothing(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, tmp_path: Path
) -> None:
    measure(cluster, kubelet, operator)
    joe = user(cluster, tmp_path, "view", name="joe")
    wait_until(lambda: joe.plugin("ls").returncode == 0, what="the role to be aggregated")
    assert "faster" in joe.plugin("report", "chain").stdout
    for asked in (("rerun", "chain"), ("run", "-f", "-")):
        done = joe.plugin(*asked, given=manifest("mine"))
        assert (done.returncode, "create" in done.stderr) == (Exit.USAGE, True)
    assert joe.plugin("profiles").returncode == Exit.USAGE


def test_profiles_are_those_of_accelbench_profiles(cluster: Cluster, jane: User) -> None:
    admin = User(cluster.kubeconfig, "admin")
    done = admin.plugin("profiles", "cpu", "--class", "nobodys", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert [each["name"] for each in json.loads(done.stdout)["profiles"]] == ["cpu"]
    assert jane.plugin("profiles").returncode == Exit.USAGE


def test_a_command_ends_if_the_cluster_refuses_its_credentials(jane: User) -> None:
    config = json.loads(jane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "worn-out"}
    jane.kubeconfig.write_text(json.dumps(config))
    done = jane.plugin("ls")
    assert (done.returncode, "credentials" in done.stderr) == (Exit.USAGE, True)


def test_inside_a_pod_its_service_account_is_used(jane: User, cluster: Cluster, tmp_path: Path) -> None:
    if os.geteuid() or shutil.which("unshare") is None:
        raise ToolMissingError("a pod's directory is made in a mount namespace, by root")
    config = json.loads(jane.kubeconfig.read_text())
    authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
    (tmp_path / "ca.crt").write_bytes(authority)
    (tmp_path / "token").write_text(config["users"][0]["user"]["token"])
    (tmp_path / "namespace").write_text(cluster.namespace)
    apply(cluster)
    place = "/var/run/secrets/kubernetes.io/serviceaccount"
    files = " ".join(shlex.quote(str(tmp_path / name)) for name in ("ca.crt", "token", "namespace"))
    inside = f"mount -t tmpfs none /run && mkdir -p {place} && cp {files} {place} && exec {shlex.join(START)} ls"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", inside],
        env=jane.environment(
            KUBECONFIG="/nowhere",
            KUBERNETES_SERVICE_HOST=str(cluster.server.hostname),
            KUBERNETES_SERVICE_PORT=str(cluster.server.port),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "chain" in done.stdout
