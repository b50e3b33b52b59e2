import io

import pytest
from rich.console import Console

from accelbench.api.result import (
    Certificate,
    Check,
    Comparison,
    Disturbed,
    PhaseTime,
    Result,
)
from accelbench.report import certificate, terminal, view
from accelbench.verdict.redaction import redact_invalid
from report import sample


def test_the_baseline_is_first_and_the_others_follow_in_the_manifests_order() -> None:
    shuffled = sample.result(variants=tuple(reversed(sample.result().variants)))
    assert [row.name for row in view.variant_rows(shuffled)] == ["pytorch/eager", "jax/op-by-op", "jax/jit"]


def test_an_invalid_comparison_shows_the_checks_and_no_speedup() -> None:
    result = sample.result(
        comparisons=(sample.invalid("jax/jit", "parity", "recompiled"),),
        certificate=Certificate(checks=(Check(name="parity", outcome="failed", reading="off", variant="jax/jit"),)),
    )
    row = next(row for row in view.variant_rows(result) if row.name == "jax/jit")
    assert row.verdict == "invalid: parity, recompiled"
    assert row.speedup == row.interval == ""
    assert row.bounds is None


@pytest.mark.parametrize(
    ("rounds", "expected"), [(0, "no complete round"), (1, "too few rounds"), (2, "rounds differ too much")]
)
def test_a_comparison_without_an_interval_has_the_reason_in_place_of_the_verdict(rounds: int, expected: str) -> None:
    unsettled = Comparison(variant="jax/jit", baseline="pytorch/eager", rounds=rounds, confidence="0.95", sentence="")
    result = sample.result(comparisons=(unsettled,))
    assert next(row.verdict for row in view.variant_rows(result) if row.name == "jax/jit") == expected


def test_nothing_is_compared_with_a_baseline_that_failed() -> None:
    case = sample.case(("pytorch/eager", "jax/jit"))
    unsettled = Comparison(variant="jax/jit", baseline="pytorch/eager", rounds=0, confidence="0.95", sentence="")
    variants = (sample.failed("pytorch/eager"), sample.variant("jax/jit", "0.001"))
    result = sample.result(case=case, variants=variants, comparisons=(unsettled,))
    assert [row.verdict for row in view.variant_rows(result)] == ["failed: OutOfMemory", "not compared"]


@pytest.mark.parametrize(("platform", "expected"), [("cuda", True), ("cpu", False)])
def test_default_precision_is_marked_as_unequal_arithmetic_if_it_is(platform: str, expected: bool) -> None:
    case = sample.case()
    case = case.model_copy(
        update={
            "measurement": case.measurement.model_copy(update={"precision": "default"}),
            "accelerator": case.accelerator.model_copy(update={"platform": platform}),
        }
    )
    sentences = view.sentences(sample.result(case=case))
    assert ("Not the same arithmetic" in sentences[-1]) == expected
    assert ("held to tf32" in sentences[-1]) == expected


def test_a_phase_of_microseconds_has_no_digits() -> None:
    eager = sample.variant("pytorch/eager", "0.001").model_copy(
        update={"phases": (PhaseTime(phase="compile", median_seconds="0.000002", min_seconds="0", max_seconds="1"),)}
    )
    table = view.phase_table(sample.result(variants=(eager,), comparisons=()))
    assert table is not None
    assert table.rows == (("pytorch/eager", "< 1 ms"),)


def autocorrelated(outcome: str, rounds: int, *uses: str) -> Result:
    """A result whose rounds follow each other, or are too few to tell."""
    checks = tuple(
        Check(name="autocorrelated", outcome=outcome, reading="lag-1 correlation 0.54", threshold="0.43", variant=use)
        for use in uses
    )
    comparisons = tuple(sample.invalid(use, "autocorrelated") for use in uses) if outcome == "failed" else ()
    return sample.result(
        rounds=rounds, comparisons=comparisons, certificate=Certificate(checks=(*sample.CHECKS, *checks))
    )


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (8, "6 of 8 checks passed; 2 need more rounds (autocorrelated: 20)"),
        (20, "6 of 8 checks passed, 2 untested (autocorrelated for 2 variants)"),
    ],
)
def test_a_check_that_needs_more_rounds_is_no_problem_and_gives_their_number(rounds: int, expected: str) -> None:
    result = autocorrelated("untested", rounds, "jax/jit", "jax/op-by-op")
    assert certificate.summary(result) == expected
    out = io.StringIO()
    Console(file=out, width=120).print(terminal.report(result))
    assert f"{'✓' if rounds < 20 else '?'} {expected}" in out.getvalue()


def test_a_note_on_the_baseline_is_given_once_for_all_comparisons() -> None:
    odd = "2 of 20 launches of pytorch/eager were slow, by a factor of 1.5 or more: the interval may be too narrow."
    comparisons = tuple(
        each.model_copy(update={"sentence": f"{each.sentence} {odd} The first call of {each.variant} takes 1 s less."})
        for each in sample.result().comparisons
    )
    text = " ".join(view.sentences(sample.result(comparisons=comparisons)))
    assert text.count(odd) == 1
    assert text.count("The first call of") == 2
    assert text.startswith("jax/jit is faster: 2.041x (2.012 to 2.071). 2 of 20")


def test_the_first_sentence_names_the_variant_that_is_certainly_the_fastest() -> None:
    result = sample.result(
        comparisons=(
            sample.comparison("jax/op-by-op", "inconclusive", "5", "0.1", "30"),
            sample.comparison("jax/jit", "faster", "2.041", "2.012", "2.071"),
        )
    )
    assert view.sentences(result)[0] == "jax/jit is faster: 2.041x (2.012 to 2.071)."
    assert result.headline.startswith("jax/jit faster 2.04x")


def test_a_rejected_baseline_is_marked_in_place_of_its_time() -> None:
    off = Check(name="parity", outcome="failed", reading="off", variant="pytorch/eager")
    result = redact_invalid(sample.result(comparisons=(), certificate=Certificate(checks=(*sample.CHECKS, off))))
    row = view.variant_rows(result)[0]
    assert (row.seconds, row.verdict) == ("", "baseline, invalid: parity")


def test_accepted_noise_hides_no_time_and_other_failed_checks_do() -> None:
    loud = Check(name="shared-device", outcome="failed", reading="52 %", variant="jax/jit")
    wrong = Check(name="parity", outcome="failed", reading="off", variant="jax/op-by-op")
    noisy = sample.result(
        comparisons=(),
        noisy=(Disturbed(round=1, reasons=("shared-device",)),),
        certificate=Certificate(checks=(*sample.CHECKS, loud, wrong)),
    )
    assert [bool(row.seconds) for row in view.variant_rows(redact_invalid(noisy))] == [True, True, False]
    quiet = noisy.model_copy(update={"noisy": ()})
    assert [bool(row.seconds) for row in view.variant_rows(redact_invalid(quiet))] == [True, False, False]
