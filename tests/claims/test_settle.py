"""The verdict of a claim follows from results and expectations alone."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from accelbench.api.case import CaseAccelerator
from accelbench.api.compiled import CompiledVariant
from accelbench.api.numbers import Numbers
from accelbench.api.result import Certificate, Check, Comparison, Result, VariantResult
from accelbench.api.run import Expectation
from accelbench.claims.bounds import BoundsRecord
from accelbench.claims.ledger import UNNAMED, Claim, Hardware, Replaced
from accelbench.claims.settle import ClaimManifest, MeasuredRun, SettledClaim, settle
from accelbench.verdict.expectations import evaluate
from report import sample

CLAIM = Claim(
    row=2,
    article="A0",
    quote="three times as fast",
    asks="is it?",
    hardware=("cpu", "gpu"),
    manifests=("02-jit.yaml",),
)
TWICE = Expectation(metric="speedup", variant="jax/jit", at_least="2")
EARLY = BoundsRecord(row=2, digest="0" * 12, commit="0" * 12, written=datetime(2020, 1, 1, tzinfo=UTC))
LATE = EARLY.model_copy(update={"written": datetime(2099, 1, 1, tzinfo=UTC)})
QUICK = Expectation(metric="seconds", variant="jax/jit", at_most="0.001")
USES = ("pytorch/eager", "jax/jit")


def a_result(lower: str, upper: str, **changes: Any) -> Result:
    middle = f"{(float(lower) + float(upper)) / 2:g}"
    comparison = sample.comparison("jax/jit", "faster", middle, lower, upper, USES[0])
    return sample.result(
        case=sample.case(USES),
        variants=(sample.variant(USES[0], "0.002"), sample.variant(USES[1], "0.0009")),
        comparisons=(comparison,),
        **changes,
    )


def invalid() -> Result:
    check = Check(name="parity", outcome="failed", reading="x is off", threshold="1e-5", variant="jax/jit")
    comparison: Comparison = sample.invalid("jax/jit", "parity")
    return a_result("2.1", "2.3").model_copy(
        update={"comparisons": (comparison,), "certificate": Certificate(checks=(check,))}
    )


def settled(
    *results: Result, expectations: tuple[Expectation, ...] = (TWICE,), cases: int | None = None
) -> SettledClaim:
    return settle(CLAIM, [asked(*results, expectations=expectations, cases=cases)], hardware="cpu")


def asked(
    *results: Result,
    expectations: tuple[Expectation, ...] = (TWICE,),
    cases: int | None = None,
    targets: tuple[str, ...] = (),
) -> ClaimManifest:
    measured = tuple((result, evaluate(expectations, result)) for result in results)
    return ClaimManifest("02-jit", MeasuredRun(measured, len(results) if cases is None else cases, "02-jit"), targets)


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [(("2.1", "2.3"), "confirmed"), (("1.2", "1.4"), "refuted"), (("1.9", "2.1"), "inconclusive")],
)
def test_the_whole_interval_decides(interval: tuple[str, str], verdict: str) -> None:
    assert settled(a_result(*interval)).verdict == verdict


def test_all_expectations_have_to_be_met_and_one_unmet_refutes() -> None:
    assert settled(a_result("2.1", "2.3"), expectations=(TWICE, QUICK)).verdict == "confirmed"
    assert settled(a_result("1.2", "1.4"), expectations=(TWICE, QUICK)).verdict == "refuted"


def test_all_cases_have_to_confirm_and_one_refutes() -> None:
    yes, no, perhaps = a_result("2.1", "2.3"), a_result("1.2", "1.4"), a_result("1.9", "2.1")
    assert settled(yes, yes).verdict == "confirmed"
    assert settled(yes, no).verdict == "refuted"
    assert settled(yes, perhaps).verdict == "inconclusive"
    assert settled(yes, cases=2).verdict == "measured-not-decided"


def test_invalid_failed_or_partial_results_decide_nothing() -> None:
    assert settled(invalid()).verdict == "inconclusive"
    failed = a_result("2.1", "2.3").model_copy(
        update={"variants": (sample.variant(USES[0], "1"), sample.failed(USES[1]))}
    )
    assert settled(failed).verdict == "inconclusive"
    for interval in (("2.1", "2.3"), ("1.2", "1.4")):
        assert settled(a_result(*interval, complete=False, stopped="Interrupted")).verdict == "measured-not-decided"
    assert settled(a_result("2.1", "2.3"), expectations=()).verdict == "inconclusive"


@pytest.mark.parametrize("interval", [("2.1", "2.3"), ("1.2", "1.4")])
def test_fewer_rounds_than_a_verdict_requires_decide_nothing(interval: tuple[str, str]) -> None:
    found = settled(a_result(*interval, rounds=2, stopped="TimeLimitReached"), expectations=(TWICE, QUICK))
    assert found.verdict == "inconclusive"
    assert all("2 of at least 5 rounds were measured" in sentence for sentence in found.sentences)


def test_a_parity_beyond_the_tolerance_refutes_a_claim_on_parity() -> None:
    same = Expectation(metric="parity", variant="jax/jit", at_most="1")
    off = Check(name="parity", outcome="failed", reading="x is off", threshold="1", variant="jax/jit")
    numbers = Numbers(parity="3.2")
    variants = tuple(each.model_copy(update={"numbers": numbers}) for each in a_result("2.1", "2.3").variants)
    result = invalid().model_copy(update={"variants": variants, "certificate": Certificate(checks=(off,))})
    assert settled(result, expectations=(same,)).verdict == "refuted"


def test_results_on_other_hardware_decide_nothing_and_are_shown() -> None:
    fast = a_result("2.1", "2.3")
    of_gpus = CLAIM.model_copy(update={"hardware": ("gpu",)})
    found = settle(of_gpus, [asked(fast)], hardware="cpu")
    assert (found.verdict, found.sentences) == ("untestable-here", ())
    assert [run.results for run in found.other_runs] == [(fast,)]
    assert settle(CLAIM, [ClaimManifest("02-jit", None)], hardware="tpu").verdict == "untestable-here"
    waiting = settle(CLAIM, [ClaimManifest("02-jit", None)], hardware="gpu")
    assert (waiting.verdict, waiting.manifests_to_run) == ("not-measured-yet", ("02-jit",))


def test_results_in_another_setting_are_shown_and_decide_nothing() -> None:
    of_gpus = CLAIM.model_copy(update={"hardware": ("gpu",)})
    fast = a_result("2.1", "2.3")
    on_gpu = fast.model_copy(
        update={
            "case": fast.case.model_copy(update={"accelerator": CaseAccelerator(profile="nvidia", platform="cuda")})
        }
    )
    beside = MeasuredRun([(on_gpu, ())], 1, "02-jit-in-tf32")
    found = settle(of_gpus, [ClaimManifest("02-jit", None)], hardware="gpu", additional_runs=[beside])
    assert (found.verdict, found.sentences) == ("measured-not-decided", ())


def test_a_time_of_one_machine_is_decided_on_that_machine_alone() -> None:
    claim = CLAIM.model_copy(update={"machine": "RTX 3090"})
    other = a_result("2.1", "2.3")
    same = other.model_copy(update={"fingerprint": {**other.fingerprint, "device.name": "NVIDIA GeForce RTX 3090"}})
    assert settle(claim, [asked(other)], hardware="gpu").verdict == "untestable-here"
    assert settle(claim, [asked(same)], hardware="gpu").verdict == "confirmed"


def compiled(target: str, kernels: int) -> Result:
    """A program that was compiled for `target`."""
    numbers = Numbers(kernels=kernels)
    case = sample.case(("jax/jit",)).model_copy(
        update={"accelerator": CaseAccelerator(profile="cpu", platform="cpu", devices=1, target=target)}
    )
    return sample.result(
        case=case,
        variants=(VariantResult(name="jax/jit", use="jax/jit", numbers=numbers),),
        comparisons=(),
        protocol="compile",
        compiled=(CompiledVariant(variant="jax/jit", target=target, devices=1, fits=True),),
    )


ONE = Expectation(metric="kernels", variant="jax/jit", at_most="1")
TARGETS = ("h100", "v5e-16")


@pytest.mark.parametrize(
    ("hardware", "kernels", "verdict"),
    [
        (("gpu",), (1, 8), "confirmed"),
        (("gpu",), (8, 1), "refuted"),
        (("gpu", "tpu"), (1, 8), "refuted"),
        (("gpu", "tpu"), (1, 1), "confirmed"),
        (("cpu",), (1, 1), "untestable-here"),
    ],
)
def test_a_compiled_program_decides_a_claim_about_its_target_hardware(
    hardware: tuple[Hardware, ...], kernels: tuple[int, int], verdict: str
) -> None:
    """Wherever it was compiled: nothing ran there."""
    results = [compiled(target, count) for target, count in zip(TARGETS, kernels, strict=True)]
    claim = CLAIM.model_copy(update={"hardware": hardware})
    assert settle(claim, [asked(*results, expectations=(ONE,), targets=TARGETS)], hardware="cpu").verdict == verdict


def test_a_compiled_program_alone_does_not_confirm_a_claim_that_needs_measuring_too() -> None:
    """It can refute it."""
    claim = CLAIM.model_copy(update={"hardware": ("gpu",)})
    measured = asked(a_result("2.1", "2.3"))
    for kernels, verdict in ((1, "untestable-here"), (2, "refuted")):
        program = asked(compiled("h100", kernels), expectations=(ONE,), targets=("h100",))
        assert settle(claim, [program, measured], hardware="cpu").verdict == verdict


@pytest.mark.parametrize("interval", [("2.1", "2.3"), ("1.2", "1.4"), ("1.9", "2.1")])
def test_a_question_of_the_ledgers_own_is_neither_confirmed_nor_refuted(interval: tuple[str, str]) -> None:
    own = CLAIM.model_copy(update={"kind": "question"})
    assert settle(own, [asked(a_result(*interval))], hardware="cpu").verdict == "measured"
    of_gpus = own.model_copy(update={"hardware": ("gpu",)})
    assert settle(of_gpus, [asked(a_result(*interval))], hardware="cpu").verdict == "untestable-here"
    assert settle(own, [ClaimManifest("02-jit", None)], hardware="cpu").verdict == "not-measured-yet"


def test_bounds_of_the_ledger_replace_those_of_the_manifest() -> None:
    slow = CLAIM.model_copy(update={"expectations": (TWICE,)})
    result = a_result("1.2", "1.4")
    assert settle(slow, [asked(result, expectations=())], hardware="cpu").verdict == "refuted"


def test_a_finding_is_given_with_its_numbers() -> None:
    [sentence] = settled(a_result("2.1", "2.3")).sentences
    assert sentence == "jax/jit at least 2 times as fast as pytorch/eager: met, 2.2 times as fast (2.1 to 2.3)."


def test_findings_of_several_workloads_are_given_for_each() -> None:
    one = a_result("2.1", "2.3")
    other = one.model_copy(update={"case": one.case.model_copy(update={"workload": "maxsim"})})
    assert [sentence.partition(": ")[0] for sentence in settled(one, other).sentences] == [one.case.workload, "maxsim"]
    assert settled(one, one).sentences[0].startswith("jax/jit at least 2 times as fast")


def test_seconds_of_an_unnamed_machine_are_never_decided() -> None:
    claim = CLAIM.model_copy(update={"machine": UNNAMED})
    for here in ("cpu", "gpu"):
        assert settle(claim, [asked(a_result("2.1", "2.3"))], hardware=here).verdict == "untestable-anywhere"


@pytest.mark.parametrize(
    ("intervals", "verdict"),
    [
        ((("2.1", "2.3"), ("1.2", "1.4")), "example-exists"),
        ((("1.2", "1.4"), ("1.9", "2.1")), "inconclusive"),
        ((("1.2", "1.4"),), "inconclusive"),
    ],
)
def test_a_claim_of_possibility_needs_one_manifest_and_none_refutes_it(
    intervals: tuple[tuple[str, str], ...], verdict: str
) -> None:
    claim = CLAIM.model_copy(update={"kind": "possibility"})
    examples = [asked(a_result(*each)) for each in intervals]
    assert settle(claim, examples, hardware="cpu", record=EARLY).verdict == verdict


@pytest.mark.parametrize("record", [None, LATE])
def test_an_example_chosen_after_its_result_does_not_count(record: BoundsRecord | None) -> None:
    claim = CLAIM.model_copy(update={"kind": "possibility"})
    found = settle(claim, [asked(a_result("2.1", "2.3"))], hardware="cpu", record=record)
    assert found.verdict == "inconclusive"


def test_an_example_of_a_possibility_has_to_be_a_whole_run() -> None:
    claim = CLAIM.model_copy(update={"kind": "possibility"})
    partial = asked(a_result("2.1", "2.3"), cases=2)
    assert settle(claim, [partial], hardware="cpu", record=EARLY).verdict == "measured-not-decided"
    assert settle(claim, [asked(invalid())], hardware="cpu", record=EARLY).verdict == "inconclusive"


@pytest.mark.parametrize("interval", [("2.1", "2.3"), ("1.2", "1.4")])
def test_a_claim_that_cannot_be_measured_is_an_opinion_despite_related_results(interval: tuple[str, str]) -> None:
    opinion = CLAIM.model_copy(update={"kind": "opinion"})
    assert settle(opinion, [asked(a_result(*interval))], hardware="cpu").verdict == "opinion"
    assert settle(opinion, [], hardware="cpu").verdict == "opinion"


def test_a_claim_without_a_manifest_of_its_setting_has_no_verdict() -> None:
    claim = CLAIM.model_copy(update={"manifests": ()})
    assert settle(claim, [], hardware="cpu").verdict == "untestable-here"


@pytest.mark.parametrize(
    ("written", "age"),
    [
        (EARLY, "before-any-result"),
        (EARLY.model_copy(update={"written": datetime(2026, 1, 2, tzinfo=UTC)}), "before-this-result"),
        (LATE, "after-this-result"),
        (None, "not-recorded"),
    ],
)
def test_a_verdict_shows_whether_its_bounds_were_written_before_its_results(
    written: BoundsRecord | None, age: str
) -> None:
    earlier = Replaced(measured=date(2026, 1, 1), result="")
    claim = CLAIM.model_copy(update={"replaced": (earlier,)})
    result = a_result("2.1", "2.3", started="2026-01-03T00:00:00Z", finished="2026-01-03T01:00:00Z")
    assert settle(claim, [asked(result)], hardware="cpu", record=written).bounds_age == age


def test_an_answer_is_shown_only_with_the_results_and_the_verdict_that_it_was_written_for() -> None:
    result = a_result("2.1", "2.3")
    digest = settle(CLAIM, [asked(result)], hardware="cpu").results_digest
    claim = CLAIM.model_copy(update={"answers": {"confirmed": "Twice."}, "written_for": digest})
    assert settle(claim, [asked(result)], hardware="cpu").answer == "Twice."
    again = result.model_copy(update={"finished": "2099-01-01T00:00:00Z"})
    assert settle(claim, [asked(again)], hardware="cpu").answer == ""
    slower = a_result("1.2", "1.4")
    assert settle(claim, [asked(slower)], hardware="cpu").answer == ""
