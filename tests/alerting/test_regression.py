"""What a platform team installs, as far as it can be had here: helm, two replicas, Prometheus and Alertmanager."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.api.result import Certificate, Check, OutlierCounts, Spread
from alerting.alertmanager import Told, running_alertmanager
from chart.helm import CHART, helm
from chart.schemas import schemas
from cluster.wait import wait_until
from metrics.prometheus import running_prometheus
from operator_world.builders import make_headline, make_log, make_result
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess
from operator_world.steps import apply, next_pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CRDS = Path(__file__).parents[2] / "crds"
PLATFORM = {
    "replicas": 2,
    "podDisruptionBudget": {"enabled": True},
    "metrics": {
        "serviceMonitor": {"enabled": True},
        "prometheusRule": {"enabled": True, "alertLabels": {"team": "ml"}},
    },
}


@pytest.fixture
def installed(cluster: Cluster) -> Iterator[Cluster]:
    """The chart beside the Prometheus Operator's definitions, with what its objects say read back."""
    cluster.define(schemas().crds)
    release = (cluster.namespace, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}")
    done = helm("install", "--take-ownership", *release, CHART, values=PLATFORM)
    assert done.returncode == 0, done.stderr
    yield cluster
    helm("uninstall", *release)


@pytest.fixture
def replicas(installed: Cluster, tmp_path: Path) -> Iterator[list[OperatorProcess]]:
    """The two that the Deployment asks for, as processes: there is no kubelet here."""
    (deployment,) = installed.get("deployments")["items"]
    assert deployment["spec"]["replicas"] == 2
    processes = [OperatorProcess(installed, tmp_path / name, lease="operator") for name in ("one", "two")]
    for process in processes:
        process.start()
    wait_until(lambda: all(each.is_ready for each in processes), what="both replicas to be ready")
    yield processes
    for process in processes:
        process.terminate()
        assert "Traceback" not in process.log(), process.log()


@pytest.fixture
def kubelet(cluster: Cluster, tmp_path: Path) -> Iterator[FakeKubelet]:
    cluster.define(CRDS)
    with FakeKubelet(cluster, tmp_path) as running:
        yield running


def scraped(installed: Cluster) -> dict[str, Any]:
    """How the ServiceMonitor has the operator scraped, in Prometheus's own words."""
    (monitor,) = installed.get("servicemonitors")["items"]
    (endpoint,) = monitor["spec"]["endpoints"]
    (service,) = installed.get("services")["items"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    return {"honor_labels": endpoint["honorLabels"], "scheme": endpoint.get("scheme", "http")}


def rules(installed: Cluster, directory: Path) -> list[str]:
    """Files with the rules of every PrometheusRule, evaluated each second: a test does not wait for minutes."""
    files = []
    for each in installed.get("prometheusrules")["items"]:
        groups = [{**group, "interval": "1s"} for group in each["spec"]["groups"]]
        path = directory / f"{each['metadata']['name']}.json"
        path.write_text(json.dumps({"groups": groups}))
        files.append(str(path))
    assert files
    return files


def measure(cluster: Cluster, kubelet: FakeKubelet, run: str, seconds: str) -> None:
    """A run of the series `nightly`, whose jax/jit takes so long."""
    apply(cluster, name=run, series="nightly")
    pod = next_pod(kubelet, cluster)
    result = make_result(kubelet.case_of(pod))
    low, high = (f"{float(seconds) * factor:.6g}" for factor in (0.99, 1.01))
    baseline, other = result.variants
    assert other.seconds is not None
    none = OutlierCounts(of=5, low_severe=0, low_mild=0, high_mild=0, high_severe=0)
    spread = Spread(block_outliers=none, launch_outliers=none, lower_seconds=low, upper_seconds=high)
    slower = other.model_copy(
        update={
            "seconds": other.seconds.model_copy(update={"geometric_mean_seconds": seconds}),
            "spread": spread,
        }
    )
    passed = tuple(Check(name=name, outcome="passed", reading="0") for name in ("parity", "non-finite"))
    result = result.model_copy(update={"variants": (baseline, slower), "certificate": Certificate(checks=passed)})
    kubelet.start(pod)
    kubelet.end(pod, log=make_log(result), message=make_headline(result))


def test_a_regression_is_told_to_whoever_is_on_call_and_is_told_to_be_over(
    installed: Cluster, replicas: list[OperatorProcess], kubelet: FakeKubelet, tmp_path: Path
) -> None:
    with running_alertmanager(tmp_path / "alertmanager") as (address, told):
        more = {
            "rule_files": rules(installed, tmp_path),
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [address]}]}]},
        }
        targets = [f"127.0.0.1:{each.metrics_port}" for each in replicas]
        with running_prometheus(
            tmp_path / "prometheus", *targets, every="1s", more=more, scraped=scraped(installed)
        ) as prometheus:
            measure(installed, kubelet, "monday", "0.100")
            before = 'count_over_time(accelbench_step_seconds{series="nightly", variant="jax/jit"}[1h]) > 10'
            wait_until(lambda: prometheus.query(before), what="a history")
            assert told.alerts == []

            leader = next(each for each in replicas if each.leads)
            leader.kill()
            leader.start()
            measure(installed, kubelet, "tuesday", "0.130")
            wait_until(lambda: told.of("AccelbenchRegression", "firing"), what="the regression to be told")
            [alert, *_] = told.of("AccelbenchRegression", "firing")
            marks = {"namespace": installed.namespace, "series": "nightly", "variant": "jax/jit", "team": "ml"}
            assert marks.items() <= alert["labels"].items()
            assert alert["annotations"]["runbook"].endswith("#accelbenchregression")

            measure(installed, kubelet, "wednesday", "0.100")
            wait_until(lambda: told.of("AccelbenchRegression", "resolved"), what="the regression to be over")
    names = {alert["labels"]["alertname"] for alert in told.alerts}
    assert names == {"AccelbenchRegression"}
    assert_told_once(told)


def assert_told_once(told: Told) -> None:
    """A person is not told twice of the same."""
    variants = [alert["labels"]["variant"] for alert in told.of("AccelbenchRegression", "firing")]
    assert variants == ["jax/jit"]
