"""The known times of a simulated experiment are recovered."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from accelbench.api.result import PhaseTime, Result, VariantResult
from accelbench.workload import Measure, ProtocolName
from accelbench.workloads.matmul_chain import MatmulChain
from golden.defects import HONEST, UNITS
from golden.experiment import BASELINE, VARIANT, case, in_processes, measure, outcomes
from golden.truth import Truth

WITHIN = 1e-3
"""Of the truth: a thousandth."""
OTHER_COMES_FIRST = 3
"""A seed: a launch that hangs then leaves time for the others."""


def of(result: Result, name: str) -> VariantResult:
    return next(variant for variant in result.variants if variant.name == name)


def seconds(result: Result, name: str) -> float:
    quantiles = of(result, name).seconds
    assert quantiles is not None, of(result, name).failure
    return float(quantiles.geometric_mean_seconds)


def medians(phases: tuple[PhaseTime, ...]) -> dict[str, float]:
    return {phase.phase: float(phase.median_seconds) for phase in phases}


@pytest.mark.parametrize("call_seconds", [10e-6, 1e-3, 0.1, 2.5])
def test_step_times_are_recovered_within_a_thousandth(call_seconds: float, tmp_path: Path) -> None:
    truths = {
        BASELINE: Truth(call_seconds=call_seconds),
        VARIANT: Truth(call_seconds=call_seconds / 1.25, slow_first_call_seconds=5.0),
    }
    result = measure(case(rounds_min=2, rounds_max=2), lambda variant, _: truths[variant], tmp_path)
    for name, truth in truths.items():
        assert seconds(result, name) == pytest.approx(truth.call_seconds / UNITS, rel=WITHIN)
    (comparison,) = result.comparisons
    assert comparison.verdict == "faster"
    assert comparison.speedup is not None
    assert float(comparison.speedup) == pytest.approx(1.25, rel=WITHIN)


def test_late_work_of_the_last_call_is_a_small_part_of_a_longer_block(tmp_path: Path) -> None:
    lingers = Truth(call_seconds=0.3, lingering_seconds=0.03)  # a tenth: more than a block of one call may leave
    truths = {BASELINE: lingers, VARIANT: replace(lingers, call_seconds=0.24)}
    result = measure(case(rounds_min=2, rounds_max=2), lambda variant, _: truths[variant], tmp_path)
    found = outcomes(result)
    assert {found["unsynchronised", name] for name in truths} == {"passed"}
    assert result.comparisons[0].verdict == "faster"


def test_the_time_of_a_launch_outside_its_steps_is_recovered(tmp_path: Path) -> None:
    truth = replace(HONEST[VARIANT], import_seconds=0.7, device_init_seconds=0.2, slow_first_call_seconds=5.0)
    truths = {BASELINE: HONEST[BASELINE], VARIANT: truth}
    result = measure(case(), lambda variant, _: truths[variant], tmp_path)
    first_call = truth.slow_first_call_seconds + truth.call_seconds
    expected = {
        "import": truth.import_seconds,
        "device-init": truth.device_init_seconds,
        "compile": truth.compile_seconds,
        "first-step": first_call,
    }
    found = medians(of(result, VARIANT).phases)
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=WITHIN)
    warm = {"compile": truth.cached_compile_seconds, "first-step": first_call}
    assert medians(of(result, VARIANT).warm_phases) == pytest.approx(warm, rel=WITHIN)
    spent = {name: float(value) for name, value in result.overhead.items()}
    total, _blocks = spent.pop("total"), spent.pop("blocks")
    assert math.fsum(spent.values()) == pytest.approx(total, rel=WITHIN)


def test_the_steps_after_which_compiling_pays_back_are_recovered(tmp_path: Path) -> None:
    result = measure(case(), lambda variant, _: HONEST[variant], tmp_path)
    saved = (HONEST[BASELINE].call_seconds - HONEST[VARIANT].call_seconds) / UNITS
    pays_back = result.comparisons[0].pays_back
    assert pays_back is not None
    assert pays_back.answer == "after"
    assert pays_back.steps == pytest.approx(HONEST[VARIANT].compile_seconds / saved, rel=WITHIN)
    assert float(pays_back.extra_seconds) == pytest.approx(HONEST[VARIANT].compile_seconds, rel=WITHIN)


def test_single_calls_have_their_median_and_their_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _measured_by(monkeypatch, "latency")
    tails = {BASELINE: 2.0, VARIANT: 3.0}
    truths = {name: replace(HONEST[name], slow_every=25, slow_factor=factor) for name, factor in tails.items()}
    result = measure(case(rounds_min=2, rounds_max=2), lambda variant, _: truths[variant], tmp_path)
    for name, factor in tails.items():
        middle = truths[name].call_seconds / UNITS
        assert seconds(result, name) == pytest.approx(middle, rel=WITHIN)
        tail = [launch.p99_seconds for launch in of(result, name).launches]
        assert [float(each) for each in tail if each] == pytest.approx([factor * middle] * 2, rel=2 * WITHIN)
    (comparison,) = result.tail_comparisons
    assert comparison.speedup is not None
    assert float(comparison.speedup) == pytest.approx(1.25 * 2 / 3, rel=2 * WITHIN)


def test_requests_have_their_response_and_their_service(tmp_path: Path) -> None:
    constant = {"rate_per_second": 40, "process": "constant", "requests": 300}
    asked = case(rounds_min=2, rounds_max=2, protocol="arrivals", arrivals=constant)
    slow_seconds, interval = 0.040, 0.025
    truths = {
        name: replace(HONEST[name], slow_every=3, slow_factor=slow_seconds / HONEST[name].call_seconds)
        for name in HONEST
    }
    result = measure(asked, lambda variant, _: truths[variant], tmp_path)
    assert (result.protocol, result.unit) == ("arrivals", "request")
    for name, truth in truths.items():
        # A third of the requests is slow; the next one waits for it, and that is the median response.
        wait = slow_seconds - interval
        assert seconds(result, name) == pytest.approx(wait + truth.call_seconds, rel=WITHIN)
        numbers = of(result, name).numbers
        assert float(numbers.service_seconds or 0) == pytest.approx(truth.call_seconds, rel=WITHIN)
        assert float(numbers.p99_seconds or 0) == pytest.approx(slow_seconds, rel=2 * WITHIN)
        busy_share = 40 * (2 * truth.call_seconds + slow_seconds) / 3
        assert float(numbers.utilisation or 0) == pytest.approx(busy_share, rel=WITHIN)
        assert numbers.requests_per_second == 40
    (comparison,), (tail,) = result.comparisons, result.tail_comparisons
    assert (comparison.quantity, comparison.verdict, comparison.pays_back) == ("p50", "faster", None)
    assert float(comparison.speedup or 0) == pytest.approx(0.0275 / 0.025, rel=WITHIN)
    assert tail.quantity == "p99"


def test_an_episode_counts_its_first_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _measured_by(monkeypatch, "episode")
    truths = {name: replace(truth, compile_seconds=0.0) for name, truth in HONEST.items()}
    result = measure(case(rounds_min=2, rounds_max=2), lambda variant, _: truths[variant], tmp_path)
    for name, truth in truths.items():
        whole = truth.call_seconds + truth.slow_first_call_seconds
        assert seconds(result, name) == pytest.approx(whole / UNITS, rel=WITHIN)


def test_rounds_that_were_disturbed_are_named_and_change_nothing(tmp_path: Path) -> None:
    in_the_middle = {"slow_after_seconds": 2.0, "slowdown": 2.0, "held_back": 0.5}
    disturbed = {(BASELINE, 2): in_the_middle, (VARIANT, 3): {"others": 0.5}}
    result = measure(
        case(), lambda variant, number: replace(HONEST[variant], **disturbed.get((variant, number), {})), tmp_path
    )
    assert [(each.round, each.reasons[0].partition(":")[0]) for each in result.quarantined] == [
        (2, f"throttled for {BASELINE}"),
        (3, f"shared-device for {VARIANT}"),
    ]
    assert "failed" not in outcomes(result).values()
    assert result.rounds == 3
    for name, truth in HONEST.items():
        assert seconds(result, name) == pytest.approx(truth.call_seconds / UNITS, rel=WITHIN)


def test_if_noise_is_accepted_disturbed_rounds_count_and_the_result_is_noisy(tmp_path: Path) -> None:
    disturbed = {(VARIANT, 1): {"stolen": 0.11}, (BASELINE, 3): {"others": 0.5}}
    result = measure(
        case(accept_noise=True),
        lambda variant, number: replace(HONEST[variant], **disturbed.get((variant, number), {})),
        tmp_path,
    )
    assert (result.rounds, result.quarantined, result.stopped) == (3, (), "TargetMet")
    assert [each.round for each in result.noisy] == [1, 3]
    assert result.noisy[0].reasons == (f"throttled for {VARIANT}: Hypervisor steal: 11 % (limit 5 %)",)
    assert "neighbour, pid 4711: 50 %" in result.noisy[1].reasons[0]
    (comparison,) = result.comparisons
    assert (comparison.verdict, comparison.noisy, comparison.invalid) == (None, True, ())
    assert comparison.lower is not None
    assert not result.valid
    quiet = measure(case(accept_noise=True), lambda variant, _: HONEST[variant], _fresh(tmp_path))
    assert (quiet.noisy, quiet.valid, quiet.comparisons[0].verdict) == ((), True, "faster")


def _fresh(directory: Path) -> Path:
    other = directory / "other"
    other.mkdir()
    return other


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ends": "crashes"}, "Killed"),
        ({"ends": "hangs"}, "TimedOut"),
        ({"raises": "no such shape"}, "Raised"),
        ({"raises": "MemoryError"}, "OutOfMemory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_failed_variant_has_a_reason_and_does_not_affect_the_others(
    changes: dict[str, str], reason: str, tmp_path: Path
) -> None:
    truths = {**HONEST, "other": replace(HONEST[VARIANT], **changes)}
    asked = case(VARIANT, "other", time_limit_seconds=200, seed=OTHER_COMES_FIRST)
    result = measure(asked, lambda variant, _: truths[variant], tmp_path)
    failure = of(result, "other").failure
    assert failure is not None
    assert (failure.reason, failure.phase, failure.round) == (reason, "steady", 1)
    assert [comparison.verdict for comparison in result.comparisons] == ["faster", None]
    assert "failed" not in outcomes(result).values()


@pytest.mark.slow
def test_real_processes_give_the_verdicts_of_the_simulation_in_one_process(tmp_path: Path) -> None:
    """Supervisor, launches and judge, each a process: what was put in comes out, and a crash is its variant's own."""
    crashing = "crashing"
    truths = {name: replace(truth, compile_seconds=0.0) for name, truth in HONEST.items()}  # so that nothing is probed
    truths[crashing] = replace(truths[VARIANT], ends="crashes")
    asked = case(VARIANT, crashing, rounds_min=2, rounds_max=2, time_limit_seconds=280)
    result = in_processes(asked, truths, tmp_path)
    for name in HONEST:
        assert seconds(result, name) == pytest.approx(truths[name].call_seconds / UNITS, rel=WITHIN)
    assert [comparison.verdict for comparison in result.comparisons] == ["faster", None]
    assert "failed" not in outcomes(result).values()
    failure = of(result, crashing).failure
    assert failure is not None
    assert (failure.reason, failure.phase) == ("Killed", "steady")


def _measured_by(monkeypatch: pytest.MonkeyPatch, protocol: ProtocolName) -> None:
    monkeypatch.setattr(MatmulChain, "measure", lambda _self, _parameters: Measure(protocol=protocol, unit="product"))
