"""The metrics in a scrape of the operator."""

from __future__ import annotations

import math
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from accelbench.api.result import Payback
from accelbench_operator.metrics.families import (
    COMPARISON_METRICS,
    LIVE_CASE_METRICS,
    LIVE_COMPARISON_METRICS,
    OPERATOR_METRICS,
    RESULT_METRICS,
    VARIANT_METRICS,
    Metric,
)
from cluster.build import binaries
from cluster.ports import free_port
from cluster.wait import HANG_SECONDS
from metrics.documents import failed, faster, invalid, noisy, snapshot
from metrics.serving import registry_of, served_metrics, text_of
from targets.documents import compiled

if TYPE_CHECKING:
    from accelbench_operator.metrics.snapshot import Snapshot

ALL = (
    *RESULT_METRICS,
    *VARIANT_METRICS,
    *COMPARISON_METRICS,
    *LIVE_CASE_METRICS,
    *LIVE_COMPARISON_METRICS,
    *OPERATOR_METRICS,
)
ON_JAX = {
    "namespace": "team-a",
    "series": "matmul-chain",
    "case": "size-512-0123456789",
    "workload": "matmul-chain",
    "accelerator": "cpu",
    "noisy": "false",
    "variant": "jax/jit",
    "framework": "jax",
}


def value(shown: Snapshot, name: str, **labels: str) -> float | None:
    return registry_of(shown).get_sample_value(name, labels)


def exposition(shown: Snapshot) -> str:
    return text_of(shown)


def test_a_verdict_is_exported_with_its_speedup_and_interval() -> None:
    shown = snapshot(("team-a", faster()))
    assert value(shown, "accelbench_speedup_ratio", **ON_JAX) == 2.04
    assert value(shown, "accelbench_speedup_lower_ratio", **ON_JAX) == 2.01
    assert value(shown, "accelbench_speedup_upper_ratio", **ON_JAX) == 2.07
    assert value(shown, "accelbench_comparison_rounds", **ON_JAX) == 8
    assert value(shown, "accelbench_verdict", **ON_JAX, verdict="faster") == 1
    assert value(shown, "accelbench_verdict", **ON_JAX, verdict="slower") is None


def test_break_even_is_exported_with_its_answer_margin_and_interval() -> None:
    shown = snapshot(("team-a", faster()))
    assert value(shown, "accelbench_pays_back_steps", **ON_JAX, answer="after") == 120
    of_the_case = {name: ON_JAX[name] for name in ON_JAX if name not in {"variant", "framework"}}
    assert value(shown, "accelbench_equivalence_margin_ratio", **of_the_case) == 0.02


@pytest.mark.parametrize(
    ("answer", "steps"), [("at-once", 0), ("never", math.inf), ("after", None)], ids=["at once", "never", "not known"]
)
def test_break_even_without_a_number_of_steps(answer: str, steps: float | None) -> None:
    result = faster()
    found = Payback(answer=answer, first_call_seconds="0.1", extra_seconds="0.08")
    comparison = result.comparisons[0].model_copy(update={"pays_back": found})
    shown = snapshot(("team-a", result.model_copy(update={"comparisons": (comparison,)})))
    assert value(shown, "accelbench_pays_back_steps", **ON_JAX, answer=answer) == steps


def test_every_variant_has_its_times_and_its_memory() -> None:
    shown = snapshot(("team-a", faster()))
    eager = ON_JAX | {"variant": "pytorch/eager", "framework": "pytorch"}
    assert value(shown, "accelbench_step_seconds", **ON_JAX) == 0.01
    assert value(shown, "accelbench_step_seconds", **eager) == 0.0204
    assert value(shown, "accelbench_phase_seconds", **ON_JAX, phase="compile") == 0.06
    assert value(shown, "accelbench_memory_peak_bytes", **ON_JAX) == 2**28
    assert value(shown, "accelbench_executable_accessed_bytes", **ON_JAX) == 81920
    assert value(shown, "accelbench_variant_failed", **ON_JAX, reason="") == 0


def test_an_invalid_comparison_exports_no_speedup_and_names_the_check() -> None:
    shown = snapshot(("team-a", invalid()))
    text = exposition(shown)
    assert not re.search(r"^accelbench_speedup\w*{", text, re.MULTILINE)
    assert value(shown, "accelbench_verdict", **ON_JAX | {"series": "xor"}, verdict="invalid") == 1
    assert re.search(r'^accelbench_result_checks_failed{.*check="parity".*} 1.0$', text, re.MULTILINE)
    assert re.search(r"^accelbench_result_valid{.*} 0.0$", text, re.MULTILINE)


def test_a_noisy_result_has_its_label_an_interval_and_no_verdict() -> None:
    shown = snapshot(("team-a", noisy()))
    beside = ON_JAX | {"series": "busy", "noisy": "true"}
    assert value(shown, "accelbench_speedup_lower_ratio", **beside) == 2.01
    assert value(shown, "accelbench_step_seconds", **beside) == 0.01
    assert value(shown, "accelbench_verdict", **beside, verdict="noisy") == 1
    assert value(shown, "accelbench_verdict", **beside, verdict="faster") is None
    lines = [line for line in exposition(shown).splitlines() if line.startswith("accelbench_") and "series=" in line]
    assert lines
    assert all('noisy="true"' in line for line in lines)


def test_a_variant_that_ran_out_of_memory_is_named_with_the_reason_and_the_others_times_stay() -> None:
    shown = snapshot(("team-a", failed()))
    gone = ON_JAX | {"series": "memory", "variant": "tuned", "framework": "pytorch"}
    assert value(shown, "accelbench_variant_failed", **gone, reason="OutOfMemory") == 1
    assert value(shown, "accelbench_step_seconds", **gone) is None
    assert value(shown, "accelbench_step_seconds", **gone | {"variant": "pytorch/eager"}) == 0.0204
    assert value(shown, "accelbench_verdict", **gone, verdict="failed") == 1


def test_a_comparison_without_its_variant_does_not_break_the_scrape() -> None:
    odd = faster(series="by-hand")
    odd = odd.model_copy(update={"variants": odd.variants[:1]})
    shown = snapshot(("team-a", odd), ("team-a", faster()))
    assert value(shown, "accelbench_speedup_ratio", **ON_JAX) == 2.04
    assert value(shown, "accelbench_speedup_ratio", **ON_JAX | {"series": "by-hand"}) is None


def test_only_the_info_metric_holds_what_changes_with_every_run() -> None:
    text = exposition(snapshot(("team-a", faster(run="nightly-1"))))
    holding = {line.partition("{")[0] for line in text.splitlines() if "nightly-1" in line}
    assert holding == {"accelbench_run_info"}


def test_a_series_continues_if_its_next_run_has_another_name() -> None:
    before = exposition(snapshot(("team-a", faster(run="nightly-1"))))
    after = exposition(snapshot(("team-a", faster(run="nightly-2"))))
    series = re.compile(r"^accelbench_(?!run_info)\w+{.*}", re.MULTILINE)
    assert series.findall(before) == series.findall(after)


def test_a_replica_that_does_not_lead_exports_its_health_and_no_result() -> None:
    shown = snapshot(("team-a", faster()), leading=False)
    assert value(shown, "accelbench_operator_leading") == 0
    assert value(shown, "accelbench_operator_queue_depth") == 2
    assert value(shown, "accelbench_step_seconds", **ON_JAX) is None


def test_the_metrics_of_the_operators_health_match_the_snapshot() -> None:
    shown = snapshot()
    assert value(shown, "accelbench_runs", namespace="team-b", phase="Queued") == 4
    assert value(shown, "accelbench_operator_objects", kind="Job") == 3
    assert value(shown, "accelbench_operator_queue_oldest_seconds") == 1.5
    assert value(shown, "accelbench_operator_reconciles_total") == 40
    assert value(shown, "accelbench_operator_reconcile_failures_total") == 3


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_every_metric_of_the_tables_is_in_the_exposition_with_its_help(metric: Metric[Any]) -> None:
    text = exposition(
        snapshot(("team-a", faster()), ("team-a", invalid()), ("team-b", failed()), ("team-a", compiled()))
    )
    assert f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.type}\n{metric.name}" in text
    assert metric.help.endswith(".")


def test_compiled_programs_are_exported_under_their_target_and_without_a_time() -> None:
    shown = snapshot(("team-a", compiled()))
    labels = ON_JAX | {"series": "chain", "case": "target-h100x8", "accelerator": "h100x8"}
    assert value(shown, "accelbench_target_fits", **labels) == 1
    assert value(shown, "accelbench_target_memory_bytes", **labels) == 8e10
    assert value(shown, "accelbench_executable_peak_bytes", **labels) == 4e10
    assert value(shown, "accelbench_executable_kernels", **labels) == 12
    assert value(shown, "accelbench_executable_collectives", **labels) == 3
    assert value(shown, "accelbench_executable_all_reduce_bytes", **labels) == 6e6
    assert not re.search(r"^accelbench_(step|speedup)\w*{", exposition(shown), re.MULTILINE)


def test_a_variant_that_cannot_be_compiled_has_a_reason_and_does_not_count_as_failed() -> None:
    shown = snapshot(("team-a", compiled()))
    labels = {"series": "chain", "case": "target-h100x8", "accelerator": "h100x8"}
    eager = ON_JAX | labels | {"variant": "pytorch/eager", "framework": "pytorch"}
    assert value(shown, "accelbench_variant_failed", **eager, reason="Unsupported") == 0
    assert value(shown, "accelbench_variant_failed", **eager, reason="") is None
    assert value(shown, "accelbench_variant_failed", **ON_JAX | labels, reason="") == 0


def test_promtool_accepts_the_exposition() -> None:
    text = exposition(
        snapshot(("team-a", faster()), ("team-b", invalid()), ("team-b", failed()), ("team-a", compiled()))
    )
    done = subprocess.run(
        [binaries().promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_metrics_are_collected_at_each_scrape_until_the_server_stops() -> None:
    shown = [snapshot(), snapshot(("team-a", faster()))]
    port = free_port()
    with served_metrics(lambda: shown.pop(0), port):
        first, second = (scrape(port) for _ in range(2))
    assert "accelbench_step_seconds{" not in first
    assert "accelbench_step_seconds{" in second
    with pytest.raises(urllib3.exceptions.NewConnectionError):
        scrape(port)


def scrape(port: int) -> str:
    return urllib3.request("GET", f"http://127.0.0.1:{port}/metrics", timeout=HANG_SECONDS, retries=False).data.decode()
