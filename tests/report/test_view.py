import io

import pytest
from rich.console import Console

from accelbench.api.reasons import StopReason
from accelbench.api.result import (
    Certificate,
    Check,
    Comparison,
    Disturbed,
    LaunchSummary,
    PhaseTime,
    Result,
    VariantResult,
)
from accelbench.api.run import Expectation
from accelbench.report import certificate, html, markdown, terminal, view
from accelbench.stats.summary import geometric_mean
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid
from report import sample


def test_the_baseline_comes_first_and_the_others_keep_the_manifests_order() -> None:
    shuffled = sample.result(variants=tuple(reversed(sample.result().variants)))
    assert [row.name for row in view.variant_rows(shuffled)] == ["pytorch/eager", "jax/op-by-op", "jax/jit"]


def test_a_row_says_time_spread_speedup_interval_and_verdict() -> None:
    row = next(row for row in view.variant_rows(sample.result()) if row.name == "jax/jit")
    assert (row.seconds, row.spread, row.speedup, row.interval, row.verdict) == (
        "574 µs",
        "± 0.4 %",
        "2.04x",
        "2.01 to 2.07",
        "faster",
    )


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
    ("rounds", "said"), [(0, "no complete round"), (1, "too few rounds"), (2, "rounds differ too much")]
)
def test_a_comparison_without_an_interval_says_why_where_its_verdict_would_be(rounds: int, said: str) -> None:
    unsettled = Comparison(variant="jax/jit", baseline="pytorch/eager", rounds=rounds, confidence="0.95", sentence="")
    result = sample.result(comparisons=(unsettled,))
    assert next(row.verdict for row in view.variant_rows(result) if row.name == "jax/jit") == said


def test_nothing_is_compared_with_a_baseline_that_failed() -> None:
    case = sample.case(("pytorch/eager", "jax/jit"))
    unsettled = Comparison(variant="jax/jit", baseline="pytorch/eager", rounds=0, confidence="0.95", sentence="")
    variants = (sample.failed("pytorch/eager"), sample.variant("jax/jit", "0.001"))
    result = sample.result(case=case, variants=variants, comparisons=(unsettled,))
    assert [row.verdict for row in view.variant_rows(result)] == ["failed: OutOfMemory", "not compared"]


def test_a_failed_variant_is_told_with_reason_place_and_message() -> None:
    result = sample.result(
        variants=(sample.variant("pytorch/eager", "0.001"), sample.failed("jax/jit")), comparisons=()
    )
    assert view.variant_rows(result)[1].verdict == "failed: OutOfMemory"
    assert certificate.failures(result) == (
        "jax/jit failed in round 1, phase setup (OutOfMemory): needed 3.1 GB, had 2.0 GB: lower size",
    )


def test_all_checks_passed_is_said_only_when_all_did() -> None:
    assert certificate.summary(sample.result()) == "all 6 checks passed"
    untested = Check(name="independence", outcome="untested", reading="6 rounds")
    partly = sample.result(certificate=Certificate(checks=(*sample.CHECKS, untested)))
    assert certificate.summary(partly) == "6 of 7 checks passed, 1 untested (independence)"
    failed = Check(name="clock", outcome="failed", reading="drifts")
    broken = sample.result(certificate=Certificate(checks=(*sample.CHECKS, failed)), comparisons=())
    assert certificate.summary(broken) == "6 of 7 checks passed, 1 failed (clock)"
    assert certificate.summary(sample.result(certificate=Certificate(), comparisons=())) == "no check was made"


def test_many_comparisons_are_summed_up_in_three_sentences() -> None:
    uses = ("pytorch/nn", "a/a", "b/b", "c/c", "d/d")
    result = sample.result(
        case=sample.case(uses),
        variants=tuple(sample.variant(use, "0.001") for use in uses),
        comparisons=(
            sample.comparison("a/a", "faster", "2", "1.9", "2.1", "pytorch/nn"),
            sample.comparison("b/b", "slower", "0.5", "0.4", "0.6", "pytorch/nn"),
            sample.comparison("c/c", "faster", "26", "25", "27", "pytorch/nn"),
            sample.comparison("d/d", "equivalent", "1", "0.99", "1.01", "pytorch/nn"),
        ),
        certificate=Certificate(checks=sample.PARITY),
    )
    assert view.sentences(result) == (
        "c/c is faster: 26x (25 to 27).",
        "Of 4 variants against pytorch/nn: 2 faster, 1 slower, 1 equivalent.",
        "b/b is slower: 0.5x (0.4 to 0.6).",
    )


def test_a_partial_result_says_so_and_on_how_many_rounds_it_rests() -> None:
    assert view.state(sample.result()) == ""
    partial = sample.result(complete=False, stopped="Interrupted", rounds=1)
    assert view.state(partial) == "partial: interrupted; the numbers are from 1 complete round"
    checkpoint = sample.result(complete=False, stopped=None, rounds=2)
    assert view.state(checkpoint) == "partial: not finished; the numbers are from 2 complete rounds"


def test_phases_stand_in_the_order_of_a_launch() -> None:
    table = view.phase_table(sample.result())
    assert table is not None
    assert [column.name for column in table.columns] == ["variant", *sample.PHASE_SECONDS]


def test_a_phase_of_microseconds_is_not_given_digits() -> None:
    eager = sample.variant("pytorch/eager", "0.001").model_copy(
        update={"phases": (PhaseTime(phase="compile", median_seconds="0.000002", min_seconds="0", max_seconds="1"),)}
    )
    table = view.phase_table(sample.result(variants=(eager,), comparisons=()))
    assert table is not None
    assert table.rows == (("pytorch/eager", "< 1 ms"),)


def test_the_basis_names_rounds_reason_confidence_and_time() -> None:
    assert view.basis(sample.result()) == ("6 rounds (target met), 95 % confidence over all comparisons, 1 min 12 s")


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        ("TimeLimitReached", "2 rounds (time limit of 60 s reached)"),
        ("NoTimeForRound", "2 rounds: another round (about 17 s) would not fit the limit of 60 s"),
    ],
)
def test_a_time_limit_is_said_to_be_reached_only_where_it_was(stopped: StopReason, words: str) -> None:
    case = sample.case()
    limited = case.model_copy(update={"measurement": case.measurement.model_copy(update={"time_limit_seconds": 60})})
    result = sample.result(case=limited, stopped=stopped, rounds=2, overhead={"total": "34"})
    assert view.basis(result).startswith(words)


def test_many_invalid_comparisons_are_summed_up_by_the_checks_that_failed() -> None:
    uses = ("pytorch/nn", "a/a", "b/b", "c/c", "d/d")
    result = sample.result(
        case=sample.case(uses),
        variants=tuple(sample.variant(use, "0.001") for use in uses),
        comparisons=(sample.invalid("a/a", "throttled", "parity"), *(sample.invalid(u, "throttled") for u in uses[2:])),
    )
    assert view.sentences(result) == (
        "None of 4 comparisons with pytorch/eager is valid. The checks that failed: throttled, parity (1).",
    )


def test_a_check_that_failed_for_many_variants_is_told_once() -> None:
    checks = tuple(
        Check(name=name, outcome="failed", reading=f"{use} is off", threshold="0", variant=use)
        for name in ("parity", "throttled")
        for use in ("pytorch/eager", "jax/jit")
    )
    formula = (
        "What to do: compare the variant's formula with the workload's reference; accelbench check FILE tests it in a "
        "minute."
    )
    quieter = "What to do: measure again later, use a dedicated host, or raise the CPU limit."
    assert certificate.trouble(sample.result(comparisons=(), certificate=Certificate(checks=checks))) == (
        f"parity (pytorch/eager): pytorch/eager is off. Required: 0. It failed for jax/jit too. {formula}",
        f"throttled (pytorch/eager): pytorch/eager is off. Required: 0. It failed for jax/jit too. {quieter}",
    )


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


def test_rounds_that_follow_each_other_come_with_what_to_do_once_in_every_report() -> None:
    result = autocorrelated("failed", 20, "jax/jit", "jax/op-by-op")
    out = io.StringIO()
    Console(file=out, width=400).print(terminal.report(result))
    page = html.report("run", [html.MeasuredCase(result)])
    advice = "What to do: something on the machine drifts, as neighbouring rounds resemble each other"
    for text in (out.getvalue(), markdown.report("run", [(result, ())]), page):
        assert text.count(advice) == 1
        assert "leave it some processors (--processors 1 on a laptop)" in text


def test_a_check_that_nobody_knows_any_more_is_shown_without_advice() -> None:
    check = Check(name="phase-of-the-moon", outcome="failed", reading="full", threshold="new")
    [line] = certificate.trouble(sample.result(comparisons=(), certificate=Certificate(checks=(check,))))
    assert line == "phase-of-the-moon: full. Required: new."


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        (8, "6 of 8 checks passed; 2 need more rounds (autocorrelated: 20)"),
        (20, "6 of 8 checks passed, 2 untested (autocorrelated for 2 variants)"),
    ],
)
def test_a_check_that_needs_more_rounds_is_no_problem_and_says_how_many(rounds: int, said: str) -> None:
    result = autocorrelated("untested", rounds, "jax/jit", "jax/op-by-op")
    assert certificate.summary(result) == said
    out = io.StringIO()
    Console(file=out, width=120).print(terminal.report(result))
    assert f"{'✓' if rounds < 20 else '?'} {said}" in out.getvalue()


def test_what_is_odd_of_the_baseline_is_said_once_however_many_are_compared_with_it() -> None:
    odd = "2 of 20 launches of pytorch/eager were slow, by a factor of 1.5 or more: the interval may be too narrow."
    comparisons = tuple(
        each.model_copy(update={"sentence": f"{each.sentence} {odd} The first call of {each.variant} takes 1 s less."})
        for each in sample.result().comparisons
    )
    text = " ".join(view.sentences(sample.result(comparisons=comparisons)))
    assert text.count(odd) == 1
    assert text.count("The first call of") == 2
    assert text.startswith("jax/jit is faster: 2.041x (2.012 to 2.071). 2 of 20")


@pytest.mark.parametrize(
    ("complete", "stopped", "said"),
    [
        (False, "Interrupted", "partial: interrupted; no round was complete, so there is nothing to show"),
        (True, "TimeLimitReached", "no valid round (time limit of 600 s reached)"),
    ],
)
def test_a_run_that_ended_before_a_round_was_complete_says_so_and_shows_no_empty_table(
    complete: bool, stopped: str, said: str
) -> None:
    unmeasured = tuple(VariantResult(name=use, use=use) for use in sample.USES)
    unknown = tuple(
        Comparison(variant=use, baseline=sample.USES[0], rounds=0, confidence="0.95", sentence=f"{use}: no round yet.")
        for use in sample.USES[1:]
    )
    result = sample.result(
        complete=complete,
        stopped=stopped,
        rounds=0,
        unit="step",
        variants=unmeasured,
        comparisons=unknown,
        certificate=Certificate(),
        fingerprint={},
        overhead={},
    )
    missed = ExpectationOutcome(
        Expectation(metric="parity", variant="jax/jit", at_most="1"), "undecided", "parity of jax/jit: not measured."
    )
    out = io.StringIO()
    Console(file=out, width=80).print(terminal.report(result, [missed]))
    title = "matmul-chain (size 512, length 100), float32, cpu"
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines == [title, said, f"✗ {missed.sentence}"]
    assert (
        markdown.report("run", [(result, (missed,))]) == f"# run\n\n## {title}\n\n**{said}**\n\n- {missed.sentence}\n"
    )
    page = html.report("run", [html.MeasuredCase(result, (missed,))])
    assert said in page
    assert missed.sentence in page
    assert not [word for word in ("time per", "no check was made", "<td", "no round yet") if word in page]


def test_the_first_sentence_is_about_the_variant_that_is_surely_the_fastest() -> None:
    result = sample.result(
        comparisons=(
            sample.comparison("jax/op-by-op", "inconclusive", "5", "0.1", "30"),
            sample.comparison("jax/jit", "faster", "2.041", "2.012", "2.071"),
        )
    )
    assert view.sentences(result)[0] == "jax/jit is faster: 2.041x (2.012 to 2.071)."
    assert result.headline.startswith("jax/jit faster 2.04x")


def test_where_one_side_has_fewer_rounds_the_times_of_those_are_said() -> None:
    """The baseline was quicker in a round that the variant lacks: over all rounds the times give another ratio."""
    times = {"pytorch/eager": (0.002, 0.002, 0.001), "jax/jit": (0.001, 0.001)}
    variants = tuple(
        sample.variant(use, f"{geometric_mean(its):.12f}").model_copy(
            update={
                "launches": tuple(
                    LaunchSummary(round=number, seconds=str(value), blocks=9, units_per_block=9)
                    for number, value in enumerate(its, start=1)
                )
            }
        )
        for use, its in times.items()
    )
    comparison = sample.comparison("jax/jit", "faster", "2", "1.9", "2.1").model_copy(update={"rounds": 2})
    result = sample.result(case=sample.case(tuple(times)), variants=variants, comparisons=(comparison,), rounds=3)
    assert [row.seconds for row in view.variant_rows(result)] == ["1.59 ms", "1.00 ms"]
    assert view.time_notes(result)[1:] == (
        "jax/jit is compared over the 2 rounds that both have: pytorch/eager took 2.00 ms and jax/jit 1.00 ms",
    )


def test_a_rejected_baseline_says_so_where_its_time_would_be() -> None:
    off = Check(name="parity", outcome="failed", reading="off", variant="pytorch/eager")
    result = redact_invalid(sample.result(comparisons=(), certificate=Certificate(checks=(*sample.CHECKS, off))))
    row = view.variant_rows(result)[0]
    assert (row.seconds, row.verdict) == ("", "baseline, invalid: parity")


def test_where_noise_is_accepted_its_checks_take_no_time_away_and_others_do() -> None:
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
