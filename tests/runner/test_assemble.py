"""Test the result of launches: every number can be worked out by hand."""

import dataclasses
from typing import Any

import pytest

from accelbench.api.numbers import Numbers
from accelbench.api.result import Certificate, Check, Comparison, Failure, VariantResult
from accelbench.launch.record import MISMATCH, Block, LaunchRecord, ParityReading, PhaseRecord, WarmProbe
from accelbench_runner.judge_protocol import Assessment
from accelbench_runner.supervisor.assemble import CaseTiming, assemble, quantile
from runner.supervision import case_of

JUDGED = Assessment(
    certificate=Certificate(
        checks=tuple(Check(name=name, outcome="passed", reading="0.2") for name in ("parity", "non-finite"))
    ),
    comparisons=(),
    rounds=1,
)
TIMING = CaseTiming(started="2026-01-01T00:00:00Z", finished="2026-01-01T00:01:00Z", total_seconds=60, judge_seconds=4)


def launch(variant: str, number: int, *seconds: float, **more: Any) -> LaunchRecord:
    """Return a launch with blocks of 10 units that took `seconds`."""
    blocks = tuple(Block(units=10, seconds=value) for value in seconds)
    return LaunchRecord(variant=variant, round=number, position=0, wall_seconds=10, blocks=blocks, **more)


def test_the_time_of_a_launch_is_the_median_of_its_blocks_per_unit() -> None:
    result = assemble(case_of("a", "b"), [launch("a", 1, 1.0, 3.0, 2.0)], JUDGED, TIMING)
    (summary,) = result.variants[0].launches
    assert (summary.seconds, summary.blocks, summary.units_per_block) == ("0.2", 3, 10)


def test_blocks_of_different_length_are_compared_per_unit() -> None:
    blocks = (
        Block(units=1, seconds=0.1),
        Block(units=100, seconds=20.0),
        Block(units=10, seconds=3.0),
    )
    record = LaunchRecord(variant="a", round=1, position=0, wall_seconds=30, blocks=blocks)
    assert assemble(case_of("a", "b"), [record], JUDGED, TIMING).variants[0].launches[0].seconds == "0.2"


def test_a_variants_seconds_are_quantiles_over_its_launches() -> None:
    launches = [launch("a", number, float(number)) for number in range(1, 6)]
    seconds = assemble(case_of("a", "b"), launches, JUDGED, TIMING).variants[0].seconds
    assert seconds is not None
    assert (seconds.p25_seconds, seconds.median_seconds, seconds.p75_seconds) == ("0.2", "0.3", "0.4")
    assert (seconds.p5_seconds, seconds.p95_seconds) == ("0.12", "0.48")


@pytest.mark.parametrize(("percent", "expected"), [(5, 1.2), (25, 2.0), (50, 3.0), (95, 4.8)])
def test_quantiles_interpolate_between_order_statistics(percent: int, expected: float) -> None:
    assert quantile([5.0, 1.0, 4.0, 2.0, 3.0], percent) == pytest.approx(expected)
    assert quantile([7.0], percent) == 7.0


def test_phases_are_in_order_with_minimum_and_maximum() -> None:
    phases = [
        (PhaseRecord(phase="steady", seconds=1), PhaseRecord(phase="import", seconds=seconds)) for seconds in (3, 1, 8)
    ]
    launches = [launch("a", number, 1.0, phases=each) for number, each in enumerate(phases, start=1)]
    found = assemble(case_of("a", "b"), launches, JUDGED, TIMING).variants[0].phases
    assert [phase.phase for phase in found] == ["import", "steady"]
    assert (found[0].min_seconds, found[0].median_seconds, found[0].max_seconds) == ("1", "3", "8")


def test_the_parts_of_compiling_are_medians_over_launches() -> None:
    made_of = [{"trace": 1.0, "backend": 5.0}, {"trace": 3.0}, {"trace": 2.0, "backend": 6.0, "x" * 40_000: 1.0}]
    launches = [
        launch("a", number, 1.0, phases=(PhaseRecord(phase="compile", seconds=9, parts=parts),))
        for number, parts in enumerate(made_of, start=1)
    ]
    (compiling,) = assemble(case_of("a", "b"), launches, JUDGED, TIMING).variants[0].phases
    assert compiling.parts == {"trace": "2", "backend": "5"}


def test_the_worst_parity_of_all_launches_is_kept() -> None:
    launches = [
        launch("a", number, 1.0, facts={"unitsPerCall": 4}).model_copy(
            update={"parity": ParityReading(units=1, finite=True, worst_ratio=ratio, worst_array="x", detail="")}
        )
        for number, ratio in enumerate((0.25, MISMATCH, 0.5), start=1)
    ]
    first = assemble(case_of("a", "b"), launches[::2], JUDGED, TIMING).variants[0]
    assert (first.numbers.parity, first.numbers.units_per_call) == ("0.5", 4)
    assert assemble(case_of("a", "b"), launches, JUDGED, TIMING).variants[0].numbers.parity == "1000000000000000"


def test_facts_become_rate_memory_unit_and_versions() -> None:
    facts = [
        {"unit": "epoch", "flopsPerUnit": 4e9, "peakMemoryBytes": peak, "versions": {"jax": "0.10.2"}}
        for peak in (10, 30)
    ]
    launches = [launch("a", number, 20.0, facts=each) for number, each in enumerate(facts, start=1)]
    result = assemble(case_of("a", "b"), launches, JUDGED, TIMING)
    assert result.unit == "epoch"
    assert result.variants[0].numbers.flops_per_second == "2000000000"
    assert result.variants[0].numbers.peak_memory_bytes == 30
    assert result.fingerprint["version.jax"] == "0.10.2"


def test_numbers_of_compiled_programs_are_reported_if_launches_agree() -> None:
    reported = [
        {"kernels_per_call": 3, "program_size": 40, "aliased_bytes": 0},
        {"kernels_per_call": 5, "program_size": None, "aliased_bytes": 0},
        None,
        "1e9",
    ]
    launches = [launch("a", number, 20.0, facts={"executable": each}) for number, each in enumerate(reported, start=1)]
    variants = assemble(case_of("a", "b"), [*launches, launch("b", 1, 1.0)], JUDGED, TIMING).variants
    assert variants[0].numbers == Numbers(program_size=40, aliased_bytes=0)
    assert variants[1].numbers == Numbers()


def test_a_failed_variant_keeps_what_it_measured_before() -> None:
    failure = Failure(reason="Killed", message="SIGKILL ended it", round=2)
    launches = [launch("a", 1, 1.0), launch("a", 2, failure=failure)]
    variant = assemble(case_of("a", "b"), launches, JUDGED, TIMING).variants[0]
    assert variant.failure == failure
    assert [summary.round for summary in variant.launches] == [1]


def test_every_second_of_the_case_is_attributed() -> None:
    phases = (PhaseRecord(phase="import", seconds=3), PhaseRecord(phase="steady", seconds=5))
    kept, lost = launch("a", 1, 2.0, 2.0, phases=phases), launch("b", 1, 1.0, phases=phases)
    kept = kept.model_copy(update={"warm": WarmProbe(wall_seconds=3)})
    timing = CaseTiming(
        started=TIMING.started, finished=TIMING.finished, total_seconds=60, judge_seconds=4, discarded=(lost,)
    )
    overhead = {
        name: float(seconds) for name, seconds in assemble(case_of("a", "b"), [kept], None, timing).overhead.items()
    }
    assert overhead == {
        "total": 60, "blocks": 5, "import": 6, "steady": 10,
        "process": 4, "warm-probe": 3, "judge": 4, "supervisor": 33,
    }  # fmt: skip
    parts = sum(seconds for name, seconds in overhead.items() if name not in {"total", "blocks"})
    assert parts == overhead["total"]


def test_work_outside_the_phases_has_a_name_of_its_own() -> None:
    phases = (PhaseRecord(phase="import", seconds=3), PhaseRecord(phase="steady", seconds=5))
    asides = [{"parity": 0.25, "limits": 0.5}, {"limits": 0.5}, {}]
    launches = [
        launch("a", number, 2.0, 2.0, phases=phases).model_copy(update={"asides": aside})
        for number, aside in enumerate(asides, start=1)
    ]
    overhead = assemble(case_of("a", "b"), launches, JUDGED, TIMING).overhead
    seconds = [overhead[name] for name in ("import", "parity", "limits", "process")]
    assert seconds == ["9", "0.25", "1", "4.75"]


def test_rounds_that_the_time_limit_prevented_are_noted() -> None:
    measured, cut = launch("a", 1, 1.0), launch("b", 1).model_copy(update={"unfinished": "time-limit"})
    timing = dataclasses.replace(TIMING, stopped="TimeLimitReached", discarded=(cut,))
    notes = assemble(case_of("a", "b"), [measured], None, timing).notes
    assert notes == (
        "round 1 was not completed: 1 launch was discarded",
        "b was not measured: the time limit of 60 s came first; raise timeLimitSeconds",
    )


def test_data_that_should_be_cold_and_was_not_is_noted() -> None:
    warm = assemble(case_of("a", "b"), [launch("a", 1, 1.0, facts={"cold": False})], JUDGED, TIMING)
    assert any("caches could not be emptied" in note for note in warm.notes)
    for facts in ({"cold": True}, {}):
        assert assemble(case_of("a", "b"), [launch("a", 1, 1.0, facts=facts)], JUDGED, TIMING).notes == ()


def test_the_judges_findings_are_passed_on_untouched() -> None:
    comparison = Comparison(
        variant="b", baseline="a", rounds=3, confidence="0.95", verdict="faster", speedup="2", lower="1.9", upper="2.1",
        sentence="b is faster",
    )  # fmt: skip
    certificate = Certificate(checks=(Check(name="parity", outcome="passed", reading="0.1"),))
    assessment = Assessment(certificate=certificate, comparisons=(comparison,), rounds=3)
    result = assemble(case_of("a", "b"), [launch("a", 1, 1.0)], assessment, TIMING)
    assert result.comparisons == (comparison,)
    assert result.certificate == certificate
    assert result.rounds == 3


def test_a_comparison_whose_side_failed_after_it_was_judged_has_no_verdict() -> None:
    failure = Failure(reason="Killed", message="SIGKILL ended it", round=2)
    comparisons = tuple(
        Comparison(
            variant=variant,
            baseline="a",
            rounds=1,
            confidence="0.95",
            verdict="faster",
            speedup="2",
            lower="1.9",
            upper="2.1",
            sentence=f"{variant} is faster",
        )
        for variant in ("b", "c")
    )
    certificate = Certificate(checks=(Check(name="parity", outcome="passed", reading="0.1"),))
    assessment = Assessment(certificate=certificate, comparisons=comparisons, rounds=1)
    result = assemble(case_of("a", "b", "c"), [launch("b", 2, failure=failure)], assessment, TIMING)
    assert [comparison.verdict for comparison in result.comparisons] == [None, "faster"]
    assert result.comparisons[0].sentence == "b failed in round 2 (Killed): nothing to compare."


def test_a_variants_time_is_the_geometric_mean_of_its_launches() -> None:
    launches = [launch("a", number, seconds) for number, seconds in enumerate((10.0, 20.0, 80.0), start=1)]
    seconds = assemble(case_of("a", "b"), launches, JUDGED, TIMING).variants[0].seconds
    assert seconds is not None
    assert (seconds.geometric_mean_seconds, seconds.median_seconds) == ("2.5198421", "2")


@pytest.mark.parametrize("name", ["parity", "non-finite", "work-present", "recompiled"])
def test_times_of_a_rejected_variant_are_not_in_the_result(name: str) -> None:
    off = Check(name=name, outcome="failed", reading="off", variant="a")
    checks = (*(check for check in JUDGED.certificate.checks if check.name != name), off)
    passed = Check(name=name, outcome="passed", reading="0", variant="b")
    judged = JUDGED.model_copy(update={"certificate": Certificate(checks=(*checks, passed))})
    facts = {"flopsPerUnit": 4e9, "operations": None, "peakMemoryBytes": 7}
    phases = (PhaseRecord(phase="compile", seconds=1), PhaseRecord(phase="first-step", seconds=1))
    launches = [launch(variant, 1, 1.0, facts=facts, phases=phases) for variant in ("a", "b")]
    rejected, sound = assemble(case_of("a", "b"), launches, judged, TIMING).variants
    kept = Numbers(flops_per_unit="4000000000", peak_memory_bytes=7)
    assert rejected == VariantResult(name="a", use="jax/jit", numbers=kept)
    assert sound.seconds is not None
    assert sound.numbers.flops_per_second == "40000000000"


def test_no_time_is_reported_before_a_judgement() -> None:
    assert assemble(case_of("a", "b"), [launch("a", 1, 1.0)], None, TIMING).variants[0].seconds is None


def counted(variant: str, written: float, run: float) -> LaunchRecord:
    """Return a launch of calls of two units, with these operations in a call."""
    arithmetic = {"written": written, "run": run, "source": "the optimised HLO"}
    return launch(variant, 1, 1.0, facts={"arithmetic": arithmetic, "unitsPerCall": 2})


@pytest.mark.parametrize(
    ("written", "run", "note"),
    [
        (1e6, 1e6, "b performs 0.5 times the operations of a: 5e+05 and 1e+06 floating-point operations in a unit of"),
        (4e6, 4.4e6, "b performs 2.2 times the operations of a"),
        (2e6, 1.1e6, ""),  # the compiler's doing
        (1.5e6, 1.5e6, ""),
    ],
)
def test_half_or_twice_the_operations_of_the_baseline_are_a_note(written: float, run: float, note: str) -> None:
    result = assemble(case_of("a", "b"), [counted("a", 2e6, 2e6), counted("b", written, run)], JUDGED, TIMING)
    assert len(result.notes) == bool(note)
    assert "".join(result.notes).startswith(note)


def test_arrays_that_calls_change_are_noted() -> None:
    facts = {"changed": ["net.1.running_mean", "net.1.running_var", "net.0.weight", "net.0.bias"]}
    launches = [launch("a", number, 1.0, facts=facts) for number in (1, 2)]
    [note] = assemble(case_of("a", "b"), launches, JUDGED, TIMING).notes
    assert note.startswith(
        "each call of a changes net.1.running_mean, net.1.running_var, net.0.weight and 1 more, and the next call "
    )
