"""A result fits 32 KiB: what is left out is said, and never a verdict, an interval or a failed check."""

import pytest

from accelbench.api.result import (
    MAXIMUM_BYTES,
    Certificate,
    Check,
    Comparison,
    Disturbed,
    Failure,
    LaunchSummary,
    PhaseTime,
    Quantiles,
    Quarantined,
    Result,
    VariantResult,
)
from accelbench_runner.supervisor.size_limit import fit
from runner.supervision import case_of

QUANTILES = Quantiles(
    geometric_mean_seconds="0.00123457",
    p5_seconds="0.00123457",
    p25_seconds="0.00123457",
    median_seconds="0.00123457",
    p75_seconds="0.00123457",
    p95_seconds="0.00123457",
)
PHASES = ("import", "device-init", "setup", "compile", "first-step", "warm-up", "steady")


def result_of(variants: int, rounds: int, checks: int, text: int) -> Result:
    names = [f"pytorch/compile-{'x' * 40}-{number}" for number in range(variants)]
    case = case_of(*names)
    failed = Check(name="throttled", outcome="failed", reading="r" * text, threshold="t" * text, variant=names[-1])
    return Result(
        case=case,
        complete=True,
        unit="step",
        started="2026-01-01T00:00:00Z",
        finished="2026-01-01T00:00:00Z",
        rounds=rounds,
        variants=tuple(
            VariantResult(
                name=name,
                use="pytorch/compile",
                failure=Failure(reason="Raised", message="m" * text, round=1) if name == names[-1] else None,
                seconds=QUANTILES,
                phases=tuple(
                    PhaseTime(phase=phase, median_seconds="1.23457", min_seconds="1.23457", max_seconds="1.23457")
                    for phase in PHASES
                ),
                launches=tuple(
                    LaunchSummary(
                        round=number,
                        seconds="0.00123457",
                        p5_seconds="0.00123457",
                        p95_seconds="0.00123457",
                        blocks=200,
                        units_per_block=1000,
                    )
                    for number in range(1, rounds + 1)
                ),
            )
            for name in names
        ),
        comparisons=tuple(
            Comparison(
                variant=name,
                baseline=names[0],
                rounds=rounds,
                confidence="0.95",
                verdict="faster",
                speedup="1.23457",
                lower="1.23457",
                upper="1.23457",
                sentence="s" * 300,
            )
            for name in names[1:-1]
        ),
        certificate=Certificate(
            checks=(
                failed,
                *(
                    Check(
                        name=f"check-{number}",
                        outcome="passed",
                        reading="r" * text,
                        threshold="t" * text,
                        variant=name,
                    )
                    for number in range(checks)
                    for name in names
                ),
            )
        ),
    )


def size(result: Result) -> int:
    return len(result.to_json().encode())


def test_a_result_that_fits_is_left_alone() -> None:
    result = result_of(3, 10, 12, 40)
    assert size(result) < MAXIMUM_BYTES
    assert fit(result) == result


@pytest.mark.parametrize(
    ("variants", "rounds", "checks", "text"),
    [(4, 50, 12, 40), (16, 20, 3, 40), (16, 50, 3, 40), (16, 50, 14, 60), (16, 50, 14, 500)],
)
def test_the_largest_results_fit_and_say_what_was_left_out(variants: int, rounds: int, checks: int, text: int) -> None:
    before = result_of(variants, rounds, checks, text)
    assert size(before) > MAXIMUM_BYTES
    after = fit(before)
    assert size(after) <= MAXIMUM_BYTES
    assert after.notes[-1].startswith("left out, to fit 32 KiB: the spread inside each launch")
    assert after.comparisons == before.comparisons
    assert [variant.seconds for variant in after.variants] == [variant.seconds for variant in before.variants]
    assert [check.name for check in after.certificate.checks if check.outcome == "failed"] == ["throttled"]
    assert {check.name for check in after.certificate.checks} == {check.name for check in before.certificate.checks}
    assert fit(before) == after
    assert Result.model_validate_json(after.to_json()) == after


def test_no_more_is_left_out_than_must_be() -> None:
    after = fit(result_of(4, 50, 12, 40))
    assert all(len(variant.launches) == 50 for variant in after.variants)
    assert all(len(check.reading) == 40 for check in after.certificate.checks)


def test_a_result_that_cannot_fit_is_refused() -> None:
    result = result_of(2, 3, 1, 10)
    notes = tuple(f"note {number}" for number in range(10_000))
    with pytest.raises(ValueError, match="can be at most 32768"):
        fit(result.model_copy(update={"notes": notes}))


@pytest.mark.parametrize(("field", "kind"), [("quarantined", Quarantined), ("noisy", Disturbed)])
def test_of_many_disturbed_rounds_the_first_are_listed(field: str, kind: type[Disturbed]) -> None:
    rounds = tuple(kind(round=number, reasons=("r" * 160,)) for number in range(1, 51))
    large = result_of(8, 50, 20, 100).model_copy(update={field: rounds})
    fitted = fit(large)
    assert len(fitted.to_json().encode()) <= MAXIMUM_BYTES
    assert getattr(fitted, field) == rounds[:10]
    assert "disturbed rounds after the first 10 of 50" in fitted.notes[-1]
