"""`kubectl accelbench run` and `rerun`, on a real API server with the real operator, by a user who may edit."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.reasons import FailureReason
from accelbench.api.result import Failure, Result, SpeedupEstimate
from accelbench.delivery.log import (
    LaunchFinished,
    LaunchStarted,
    PhaseReached,
    RoundFinished,
    TimeSoFar,
    encode_event,
)
from accelbench.local.exits import Exit
from cluster.cluster import Cluster
from cluster.wait import wait_until
from kubectl.plugin import User, manifest, user
from operator_world.builders import make_headline, make_log, make_result
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess
from operator_world.steps import apply, next_pod, succeed, wait_for

pytestmark = pytest.mark.slow

EXPECTED = "  expectations: [{metric: speedup, variant: jax/jit, atLeast: '3'}]\n"


def end(kubelet: FakeKubelet, pod: Any, result: Result) -> None:
    kubelet.end(pod, log=kubelet.logs.get(pod.metadata.name, "") + make_log(result), message=make_headline(result))


def round_one() -> str:
    now = SpeedupEstimate(variant="jax/jit", verdict="faster", speedup="2", lower="1.9", upper="2.1")
    events = (
        LaunchStarted(variant="pytorch/eager", round=1, position=1, of=2),
        PhaseReached(phase="compile"),
        LaunchFinished(variant="pytorch/eager", round=1, wall_seconds="2.5"),
        RoundFinished(
            round=1,
            times=(TimeSoFar(variant="pytorch/eager", seconds="0.2"), TimeSoFar(variant="jax/jit", seconds="0.1")),
            comparisons=(now,),
        ),
    )
    return "".join(f"{encode_event(event)}\n" for event in events)


def test_a_run_is_created_followed_and_ends_with_its_verdict(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    with jane.started("run", "-f", "-", given=manifest()) as run:
        assert "benchmarkrun.accelbench.dev/chain created" in run.wait_for("created")
        run.wait_for("Queued: ")
        pod = next_pod(kubelet, cluster)
        kubelet.start(pod)
        # A node that has not heard of the pod yet says that there is none.
        wait_until(lambda: pod.metadata.name in kubelet.unknown, what="the log to be asked for")
        kubelet.write(pod, "a line of a library\n" + round_one())
        run.wait_for("case 1 of 1: matmul-chain")
        run.wait_for("round 1: pytorch/eager: measured (2.5 s)")
        run.wait_for("after round 1: jax/jit: 100 ms, 2.00x (1.90 to 2.10) faster")
        end(kubelet, pod, make_result(kubelet.case_of(pod)))
        code, out, stderr = run.end()
    assert code == Exit.SUCCESS, stderr
    assert "jax/jit" in out
    assert "faster" in out
    assert "\x1b" not in out + stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    ("spec", "ended", "code", "reason"),
    [
        (EXPECTED, {}, Exit.EXPECTATION_NOT_MET, "ExpectationNotMet"),
        (
            "",
            {"failure": Failure(reason=FailureReason.RAISED, message="boom", round=1)},
            Exit.VARIANT_FAILED,
            "VariantFailed",
        ),
    ],
    ids=["expectation-not-met", "variant-failed"],
)
def test_the_exit_code_is_that_of_accelbench_run(
    jane: User,
    cluster: Cluster,
    kubelet: FakeKubelet,
    operator: OperatorProcess,
    spec: str,
    ended: dict[str, Any],
    code: Exit,
    reason: str,
) -> None:
    with jane.started("run", "-f", "-", "-o", "json", given=manifest(more=spec)) as run:
        pod = next_pod(kubelet, cluster)
        kubelet.start(pod)
        end(kubelet, pod, make_result(kubelet.case_of(pod), **ended))
        exit_code, out, stderr = run.end()
    assert exit_code == code, stderr
    assert reason in stderr
    (case,) = json.loads(out)["cases"]
    assert case["result"]["case"]["workload"] == "matmul-chain"
    assert json.loads(out)["run"]["exitCode"] == code


def test_a_run_that_the_operator_refuses_ends_with_three(jane: User, operator: OperatorProcess) -> None:
    done = jane.plugin("run", "-f", "-", given=manifest(more="  accelerator: {profile: h10}\n"))
    assert done.returncode == Exit.INVALID_SPEC
    assert ("InvalidSpec: spec.accelerator.profile" in done.stderr, done.stdout) == (True, "")
    again = jane.plugin("run", "-f", "-", given=manifest(more="  accelerator: {profile: h10}\n"))
    assert (again.returncode, "(InvalidSpec)" in again.stderr) == (Exit.INVALID_SPEC, True)
    for asked in ("report", "rerun"):
        refused = jane.plugin(asked, "chain")
        assert (refused.returncode, "InvalidSpec" in refused.stderr) == (Exit.INVALID_SPEC, True)
    assert jane.plugin("ls", "-o", "name").stdout == "benchmarkrun.accelbench.dev/chain\n"


def test_a_manifest_that_is_not_valid_creates_nothing_of_any_file(jane: User, cluster: Cluster, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(manifest("good"))
    bad.write_text(manifest("one") + "---\n" + manifest("two").replace("jax/jit", "jax/jitt").replace("3}", "0}"))
    done = jane.plugin("run", "-f", str(good), "-f", str(bad))
    assert done.returncode == Exit.INVALID_SPEC
    assert (str(bad) in done.stderr, "line 15: spec.measurement.rounds.max" in done.stderr) == (True, True)
    bad.write_text(manifest("two").replace("jax/jit", "jax/jitt"))
    assert "did you mean jit" in jane.plugin("run", "-f", str(bad)).stderr
    bad.write_text(manifest("two", EXPECTED).replace("{use: jax/jit}", "{use: jax/jti}"))
    assert "spec.variants[1].use: jax/jti" in jane.plugin("run", "-f", str(bad)).stderr
    assert cluster.get("bmr")["items"] == []


def test_no_document_is_created_if_the_server_refuses_one(jane: User, cluster: Cluster) -> None:
    elsewhere = manifest("two").replace("name: two", "name: two, namespace: kube-system")
    done = jane.plugin("run", "-f", "-", given=f"{manifest('one')}---\n{elsewhere}")
    assert (done.returncode, "create benchmarkruns" in done.stderr) == (Exit.USAGE, True)
    assert cluster.get("bmr")["items"] == []
    done = jane.plugin("run", "-n", cluster.namespace, "-f", "-", given=elsewhere)
    assert (done.returncode, "kube-system" in done.stderr) == (Exit.USAGE, True)
    done = jane.plugin("run", "-f", "-", given=f"{manifest('one')}---\n{manifest('one')}")
    assert (done.returncode, "metadata.name" in done.stderr) == (Exit.INVALID_SPEC, True)


def test_a_script_on_a_laptop_is_refused_and_one_in_a_config_map_is_left_to_its_runner(
    jane: User, cluster: Cluster
) -> None:
    own = manifest().replace("{name: matmul-chain, parameters: {size: 64, length: 4}}", "SCRIPT")
    laptop = jane.plugin("run", "-f", "-", given=own.replace("SCRIPT", "{script: {file: my_filter.py}}"))
    assert laptop.returncode == Exit.INVALID_SPEC
    assert "spec.workload.script.file" in laptop.stderr
    there = own.replace("SCRIPT", "{script: {configMapKeyRef: {name: mine, key: my_filter.py}}}")
    done = jane.plugin("run", "-f", "-", "--wait=false", given=there)
    assert (done.returncode, done.stdout) == (0, "benchmarkrun.accelbench.dev/chain created\n"), done.stderr


def test_an_existing_run_with_the_same_spec_is_followed_and_one_with_another_is_refused(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    assert jane.plugin("run", "-f", "-", "--wait=false", given=manifest()).returncode == 0
    other = jane.plugin("run", "-f", "-", given=manifest().replace("length: 4", "length: 5"))
    assert (other.returncode, "(workload)" in other.stderr) == (Exit.USAGE, True)
    policy = jane.plugin("run", "-f", "-", given=manifest(more="  runPolicy: {parallelism: 2}\n"))
    assert (policy.returncode, "(runPolicy)" in policy.stderr) == (Exit.USAGE, True)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")
    same = jane.plugin("run", "-f", "-", given=manifest())
    assert same.returncode == 0, same.stderr
    assert "(Succeeded)" in same.stderr
    assert "faster" in same.stdout
    assert len(cluster.get("bmr")["items"]) == 1


def test_several_runs_with_generated_names_end_with_the_worst_code(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    made_up = manifest().replace("name: chain", "generateName: chain-")
    with jane.started("run", "-f", "-", given=f"{made_up}---\n{made_up}{EXPECTED}") as run:
        run.wait_for("created")
        for _ in range(2):
            succeed(kubelet, next_pod(kubelet, cluster))
        code, out, stderr = run.end()
    assert code == Exit.EXPECTATION_NOT_MET, stderr
    assert stderr.count("created") == 2
    assert out.count("matmul-chain") >= 2


def test_only_the_name_is_printed_on_standard_output_for_scripts(jane: User, cluster: Cluster) -> None:
    made_up = manifest().replace("name: chain", "generateName: chain-")
    done = jane.plugin("run", "-f", "-", "--wait=false", "-o", "name", given=made_up)
    (run,) = cluster.get("bmr")["items"]
    assert done.stdout == f"benchmarkrun.accelbench.dev/{run['metadata']['name']}\n"
    assert done.stderr == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)])
def test_ctrl_c_leaves_the_run_active_and_prints_how_to_cancel_it(
    jane: User, cluster: Cluster, operator: OperatorProcess, number: signal.Signals, code: Exit
) -> None:
    with jane.started("run", "-f", "-", given=manifest()) as run:
        run.wait_for("Queued: ")
        run.process.send_signal(number)
        exit_code, out, stderr = run.end()
    assert (exit_code, out) == (code, ""), stderr
    assert "benchmarkrun/chain continues" in stderr
    assert "Traceback" not in stderr
    assert not cluster.get("bmr", "chain")["spec"]["runPolicy"].get("cancel")


def test_a_timeout_leaves_the_run_active_and_mentions_if_no_operator_accepted_it(jane: User, cluster: Cluster) -> None:
    done = jane.plugin("run", "-f", "-", "--timeout=14s", given=manifest())
    assert (done.returncode, "benchmarkrun/chain continues" in done.stderr) == (Exit.TIMED_OUT, True)
    assert "no operator has picked up chain" in done.stderr
    bad = jane.plugin("run", "-f", "-", "--timeout=5 minutes", given=manifest())
    assert (bad.returncode, "--timeout" in bad.stderr) == (Exit.USAGE, True)


def test_a_run_that_is_cancelled_or_deleted_while_it_is_followed_has_measured_nothing(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    with jane.started("run", "-f", "-", given=manifest()) as run:
        run.wait_for("Queued: ")
        cancelled = jane.plugin("cancel", "chain")
        assert cancelled.stdout == "benchmarkrun.accelbench.dev/chain cancelled\n", cancelled.stderr
        code, _, stderr = run.end()
    assert (code, "Cancelled:" in stderr) == (Exit.NOT_MEASURED, True)
    report = jane.plugin("report", "chain")
    assert (report.returncode, "Cancelled:" in report.stderr) == (Exit.NOT_MEASURED, True)
    assert "(Cancelled)" in jane.plugin("cancel", "bmr/chain").stderr
    with jane.started("run", "-f", "-", given=manifest("other")) as run:
        run.wait_for("Queued: ")
        cluster.kubectl("delete", "bmr", "other", "--wait=false")
        code, _, stderr = run.end()
    assert (code, "deleted" in stderr) == (Exit.NOT_MEASURED, True)


def test_a_clone_measures_again_in_the_same_series_without_changes_made_to_the_old_run(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster, queue="team-a", cancel=True, parallelism=2)
    wait_for(cluster, operator, "Finished", "Cancelled")
    cluster.kubectl("label", "bmr", "chain", "team=ml", "argocd.argoproj.io/instance=app")
    with jane.started("rerun", "chain") as run:
        name = run.wait_for("created").partition("/")[2].partition(" ")[0]
        again = cluster.get("bmr", name)
        cluster.kubectl("delete", "bmr", name, "--wait=false")
        run.end()
    assert again["metadata"]["generateName"] == "chain-"
    assert again["metadata"]["labels"] == {"team": "ml", "kueue.x-k8s.io/queue-name": "team-a"}
    assert "annotations" not in again["metadata"]
    assert again["spec"]["series"] == "chain"
    assert again["spec"]["runPolicy"]["parallelism"] == 2
    assert not again["spec"]["runPolicy"].get("cancel")
    named = jane.plugin("rerun", "chain", "--name", "twin", "--wait=false")
    assert named.stdout == "benchmarkrun.accelbench.dev/twin created\n"
    taken = jane.plugin("rerun", "chain", "--name", "twin")
    assert (taken.returncode, "already exists" in taken.stderr) == (Exit.USAGE, True)
    wrong = jane.plugin("rerun", "chian")
    assert (wrong.returncode, "did you mean chain?" in wrong.stderr) == (Exit.USAGE, True)


def test_a_user_who_may_not_read_pods_gets_a_note_and_the_verdict(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, tmp_path: Path
) -> None:
    ann = user(cluster, tmp_path, "accelbench-users-edit", "accelbench-users-view", name="ann")
    with ann.started("run", "-f", "-", given=manifest()) as run:
        pod = next_pod(kubelet, cluster)
        kubelet.start(pod)
        run.wait_for("progress cannot be shown")
        run.wait_for("Running: 0 of 1 cases done")
        succeed(kubelet, pod)
        code, out, stderr = run.end()
    assert (code, "faster" in out) == (Exit.SUCCESS, True), stderr
