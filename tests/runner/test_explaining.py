"""Variants are launched under a profiler after all that is timed, if a case asks for it, and never at its expense."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.case import Case
from accelbench.delivery.traces import TRACE_DIRECTORY
from cluster.wait import HANG_SECONDS
from runner.simulation import LAUNCH_SECONDS, Simulated, Simulation
from runner.supervision import Ended, case_of

PROFILED = "profiled"
"""Its launches report which operations take most."""


def explained(*variants: str, **settings: Any) -> Case:
    return case_of(*variants, explain=True, **settings)


def unknown(simulated: Simulated) -> list[str]:
    """The notes that tell which variant was not explained, and why."""
    return [note for note in simulated.result.notes if "operations that take most are not known" in note]


def test_each_variant_is_launched_once_more_after_the_rounds(simulate: Simulation) -> None:
    ended = simulate(explained(PROFILED, "profiled_2"))
    purposes = [(request.variant, request.purpose) for request in ended.requests]
    assert purposes[-2:] == [(PROFILED, "explain"), ("profiled_2", "explain")]
    assert [purpose for _, purpose in purposes].count("explain") == 2
    times = ended.variant(PROFILED).operation_times
    assert times is not None
    assert [operation.name for operation in times.operations] == ["sort"]
    assert not unknown(ended)


def test_the_extra_launches_change_nothing_but_the_duration(simulate: Simulation) -> None:
    plain, ended = simulate(case_of(PROFILED, "profiled_2")), simulate(explained(PROFILED, "profiled_2"))
    assert ended.launches == plain.launches
    assert ended.result.rounds == plain.result.rounds
    assert ended.result.comparisons == plain.result.comparisons
    assert float(ended.result.overhead["total"]) == float(plain.result.overhead["total"]) + 2 * LAUNCH_SECONDS


def test_a_timed_launch_cannot_see_whether_the_case_will_be_explained(simulate: Simulation) -> None:
    plain = simulate(case_of(PROFILED, "fine"))
    asked = simulate(explained(PROFILED, "fine"))
    timed = [request for request in asked.requests if request.purpose != "explain"]
    assert [_without_place(request.to_json()) for request in timed] == [
        _without_place(request.to_json()) for request in plain.requests
    ]
    assert "explain" not in plain.requests[0].to_json()


def _without_place(request: str) -> str:
    """The request without the number of its simulation, which is in the directory's name."""
    return request.replace("simulated-2", "simulated-1")


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        pytest.param("profiler-raises", "ValueError: no such shape", id="raises"),
        pytest.param("profiler-crashes", "SIGSEGV", id="crashes"),
        pytest.param("profiler-hangs", "TimedOut", id="hangs"),
        pytest.param("profiler-shows-nothing", "ProfilerError: the profiler's trace has no operations", id="no trace"),
        pytest.param("profiler-forges", "profiledCalls.operations.0.runs that cannot be read", id="forges"),
        pytest.param("fine", "the launch did not report profiledCalls", id="reports nothing"),
    ],
)
def test_a_profiler_that_fails_is_noted_and_changes_no_result(simulate: Simulation, variant: str, reason: str) -> None:
    ended = simulate(explained(variant, PROFILED, limit=600))
    (note,) = unknown(ended)
    assert note.startswith(f"{variant}: ")
    assert reason in note
    assert ended.result.complete
    assert ended.variant(variant).failure is None
    assert ended.variant(variant).seconds is not None
    assert ended.variant(variant).operation_times is None
    assert ended.variant(PROFILED).operation_times is not None


def test_a_variant_that_failed_is_not_launched_again(simulate: Simulation) -> None:
    ended = simulate(explained(PROFILED, "raises-in-round-2", "profiled_2"))
    explaining = [request.variant for request in ended.requests if request.purpose == "explain"]
    assert explaining == [PROFILED, "profiled_2"]


def test_no_extra_launch_starts_without_time_left(simulate: Simulation) -> None:
    ended = simulate(explained(PROFILED, "profiled_2", limit=5, rounds=20))
    assert [request.purpose for request in ended.requests if request.purpose == "explain"] == []
    assert all("time limit" in note for note in unknown(ended))
    assert len(unknown(ended)) == 2


def test_traces_are_kept_in_the_runners_directory_and_frameworks_know_that_they_are_profiled(
    run: Callable[..., Ended], tmp_path: Path
) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    ended = run(explained("jax/jit", "pytorch/eager", limit=HANG_SECONDS), environment={TRACE_DIRECTORY: str(traces)})
    kept = {trace.name: trace.read_text() for trace in traces.iterdir()}
    assert kept == {"all.1-jax-jit.trace.json.gz": "jax/jit", "all.2-pytorch-eager.trace.json.gz": "pytorch/eager"}
    times = ended.variant("jax/jit").operation_times
    assert times is not None
    assert [operation.name for operation in times.operations] == ["Kineto logs from 99"]
    assert ended.result.notes == ()


def test_a_directory_that_cannot_keep_traces_is_noted(run: Callable[..., Ended], tmp_path: Path) -> None:
    ended = run(
        explained("jax/jit", "pytorch/eager", limit=HANG_SECONDS),
        environment={TRACE_DIRECTORY: str(tmp_path / "absent")},
    )
    assert len([note for note in ended.result.notes if "trace was not kept" in note]) == 2
    assert ended.variant("jax/jit").operation_times is not None


def test_a_protocol_that_times_no_calls_is_not_explained(simulate: Simulation) -> None:
    ended = simulate(explained("observes", "observes_2"))
    assert [request.purpose for request in ended.requests if request.purpose == "explain"] == []
    assert any("nothing to explain" in note for note in ended.result.notes)
