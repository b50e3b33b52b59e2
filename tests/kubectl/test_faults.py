"""A run is followed to its end even if requests fail on the way."""

import dataclasses
import io
import json
import threading
from pathlib import Path

import pytest
from rich.console import Console

from accelbench.cluster_api import client as client_module
from accelbench.cluster_api.client import connect
from accelbench.cluster_api.kinds import RUN
from accelbench.delivery.log import LaunchFinished, encode_event
from accelbench.kubectl.follow import follow
from accelbench.kubectl.gate import exit_of
from accelbench.local.exits import Exit
from accelbench.report.live import Lines
from cluster.cluster import Cluster
from cluster.wait import wait_until
from crash.proxy import Proxy, Rule
from kubectl.plugin import User, manifest
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess
from operator_world.steps import apply, next_pod, succeed

pytestmark = pytest.mark.slow


def through(proxy: Proxy, user: User) -> User:
    """Return the same user with requests through the proxy."""
    config = json.loads(user.kubeconfig.read_text())
    config["clusters"][0]["cluster"] = {"server": proxy.url}
    kubeconfig = user.kubeconfig.with_name("proxied.kubeconfig")
    kubeconfig.write_text(json.dumps(config))
    return dataclasses.replace(user, kubeconfig=kubeconfig)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("watch benchmarkruns", "watch-expired"),
        ("watch benchmarkruns", "watch-ends"),
        ("watch benchmarkruns", "no-answer-before"),
        ("list benchmarkruns", "error-before"),
        ("list benchmarkruns", "too-many"),
        ("get pods/log", "no-answer-before"),
        ("get pods", "error-before"),
    ],
)
def test_a_request_that_fails_is_repeated(
    jane: User, cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, kind: str, fault: str
) -> None:
    rule = Rule(kind, 1, fault)
    with (
        Proxy(cluster.kubeconfig, kill=lambda: None, rules=[rule]) as proxy,
        through(proxy, jane).started("run", "-f", "-", given=manifest()) as run,
    ):
        pod = next_pod(kubelet, cluster)
        kubelet.start(pod)
        kubelet.write(pod, f"{encode_event(LaunchFinished(variant='jax/jit', round=1, wall_seconds='2.5'))}\n")
        run.wait_for("round 1: jax/jit: measured")
        succeed(kubelet, pod)
        code, out, stderr = run.end()
    assert rule.fired
    assert code == Exit.SUCCESS, stderr
    assert "faster" in out
    assert "Traceback" not in stderr


def test_a_refusal_while_a_run_is_followed_ends_the_command_but_not_the_run(
    jane: User, cluster: Cluster, operator: OperatorProcess
) -> None:
    rule = Rule("watch benchmarkruns", 1, "conflict")
    with Proxy(cluster.kubeconfig, kill=lambda: None, rules=[rule]) as proxy:
        done = through(proxy, jane).plugin("run", "-f", "-", given=manifest())
    assert (rule.fired, done.returncode) == (True, Exit.USAGE), done.stderr
    assert "benchmarkrun/chain continues" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_silent_log_is_requested_again_and_every_line_is_shown_once(
    jane: User,
    cluster: Cluster,
    kubelet: FakeKubelet,
    operator: OperatorProcess,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(client_module, "LOG_IDLE_SECONDS", 1)
    apply(cluster)
    shown = io.StringIO()
    ended: list[Exit | None] = []
    with Proxy(cluster.kubeconfig, kill=lambda: None) as proxy:
        asked = through(proxy, jane)
        with connect(kubeconfig=asked.kubeconfig) as client:
            run = client.get(RUN.path(cluster.namespace, "chain"))

            def follows() -> None:
                ended.append(
                    exit_of(follow(client, run, display=Lines(Console(file=shown)), print_message=lambda _: None))
                )

            following = threading.Thread(target=follows)
            following.start()
            pod = next_pod(kubelet, cluster)
            kubelet.start(pod)
            kubelet.write(pod, f"{encode_event(LaunchFinished(variant='jax/jit', round=1, wall_seconds='2.5'))}\n")
            wait_until(lambda: "round 1: jax/jit: measured" in shown.getvalue(), what="the line")
            before = [seen.kind for seen in proxy.requests].count("get pods/log")
            wait_until(
                lambda: [seen.kind for seen in proxy.requests].count("get pods/log") > before + 1, what="two more looks"
            )
            succeed(kubelet, pod)
            following.join(60)
    assert ended == [Exit.SUCCESS]
    assert shown.getvalue().count("round 1: jax/jit: measured") == 1
    assert shown.getvalue().count("case 1 of 1") == 1
