import json
from typing import Any

import pytest
from pydantic import ValidationError

from accelbench.api.case import Case, CaseOrigin, CaseVariant
from accelbench.api.metadata import ObjectMeta
from accelbench.api.numbers import Numbers
from accelbench.api.result import (
    BenchmarkResult,
    Certificate,
    Check,
    Comparison,
    Disturbed,
    Failure,
    JudgedExpectation,
    LaunchSummary,
    PhaseTime,
    Quantiles,
    Result,
    VariantResult,
)
from cluster.cluster import Cluster

NOW = "2026-11-21T09:00:00Z"
FASTER = Comparison(
    variant="jax/jit",
    baseline="pytorch/eager",
    rounds=8,
    confidence="0.95",
    verdict="faster",
    speedup="2.0413",
    lower="2.0124",
    upper="2.0711",
    sentence="jax/jit is faster",
)
INVALID = Comparison(
    variant="jax/scan",
    baseline="pytorch/eager",
    rounds=8,
    confidence="0.95",
    invalid=("throttled",),
    sentence="invalid",
)
TOO_EARLY = Comparison(
    variant="jax/scan",
    baseline="pytorch/eager",
    rounds=1,
    confidence="0.95",
    sentence="1 round, too few for an interval",
)
QUANTILES = Quantiles(
    geometric_mean_seconds="1.1",
    p5_seconds="1",
    p25_seconds="1",
    median_seconds="1.1",
    p75_seconds="1.2",
    p95_seconds="1.3",
)


def variant(name: str, failure: Failure | None = None) -> VariantResult:
    return VariantResult(
        name=name,
        use=name,
        failure=failure,
        seconds=QUANTILES,
        phases=(PhaseTime(phase="compile", median_seconds="0.1", min_seconds="0.1", max_seconds="0.1"),),
        launches=(LaunchSummary(round=1, seconds="1.1", blocks=9, units_per_block=3),),
        numbers=Numbers(peak_memory_bytes=1 << 34),
    )


def result(*comparisons: Comparison, failure: Failure | None = None, complete: bool = True) -> Result:
    return Result(
        case=Case(
            name="all",
            origin=CaseOrigin(run="matmul-chain", series="nightly"),
            workload="matmul-chain",
            parameters={"size": 512, "kind": "dense"},
            variants=(
                CaseVariant(name="pytorch/eager", use="pytorch/eager"),
                CaseVariant(name="jax/jit", use="jax/jit"),
                CaseVariant(name="jax/scan", use="jax/scan"),
            ),
            baseline="pytorch/eager",
        ),
        complete=complete,
        unit="step",
        started=NOW,
        finished=NOW,
        rounds=8,
        variants=(variant("pytorch/eager"), variant("jax/jit", failure)),
        comparisons=comparisons,
        certificate=Certificate(checks=(Check(name="parity", outcome="passed", reading="1e-7", threshold="1e-5"),)),
        fingerprint={"jax": "0.10.2"},
        overhead={"total": "60"},
    )


def stored(of: Result, *expectations: JudgedExpectation, name: str = "matmul-chain-all") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        BenchmarkResult.from_result(of, ObjectMeta(name=name), expectations).to_json()
    )
    return document | {"metadata": {"name": name}}


def test_the_headline_summarizes_every_comparison() -> None:
    assert result(FASTER, INVALID).headline == "jax/jit faster 2.04x (2.01 to 2.07); jax/scan invalid: throttled"


def test_the_headline_names_a_variant_that_failed() -> None:
    failure = Failure(reason="OutOfMemory", message="killed", round=2)
    assert result(failure=failure).headline == "jax/jit failed: OutOfMemory"


def test_a_result_of_one_variant_has_nothing_to_compare() -> None:
    assert result().headline == "no comparison"


@pytest.mark.parametrize(
    ("found", "valid"),
    [
        (result(FASTER), True),
        (result(FASTER, INVALID), False),
        (result(FASTER, TOO_EARLY), False),
        (result(FASTER, complete=False), False),
        (result(FASTER, failure=Failure(reason="Raised", message="no", round=1)), False),
    ],
)
def test_the_summary_shows_whether_the_result_is_valid(found: Result, valid: bool) -> None:
    assert stored(found)["summary"]["valid"] is valid


@pytest.mark.parametrize("field", ["variants", "comparisons"])
def test_a_result_holds_nothing_twice_and_only_variants_of_its_case(field: str) -> None:
    document = json.loads(result(FASTER).to_json())
    twice = document | {field: [*document[field], document[field][0]]}
    name = "name" if field == "variants" else "variant"
    foreign = document | {field: [*document[field][:-1], document[field][-1] | {name: "another"}]}
    for bad in (twice, foreign):
        with pytest.raises(ValidationError, match="occurs twice or is not a variant of the case"):
            Result.model_validate_json(json.dumps(bad))


@pytest.mark.parametrize("time", ["", "yesterday", "2026-02-30T00:00:00Z"])
def test_a_result_with_an_impossible_time_is_refused(time: str) -> None:
    document = json.loads(result(FASTER).to_json()) | {"finished": time}
    with pytest.raises(ValidationError, match="finished"):
        Result.model_validate_json(json.dumps(document))


def test_a_verdict_needs_an_interval() -> None:
    with pytest.raises(ValidationError, match="a verdict needs an interval and no failed check"):
        Comparison(**{**FASTER.model_dump(), "lower": None})


def test_an_invalid_comparison_shows_no_speedup() -> None:
    with pytest.raises(ValidationError, match="an invalid comparison shows no speedup"):
        Comparison(**{**FASTER.model_dump(), "verdict": None, "invalid": ("parity",)})


@pytest.mark.parametrize("variant", ["jax/jit", "pytorch/eager", None])
def test_a_verdict_next_to_a_failed_check_is_refused(variant: str | None) -> None:
    failed = Check(name="throttled", outcome="failed", reading="1.2 GHz", variant=variant)
    with pytest.raises(ValidationError, match=r"a verdict is not possible with failed checks \(throttled\)"):
        Result(**{**dict(result(FASTER)), "certificate": Certificate(checks=(failed,))})


def test_a_verdict_without_a_certificate_is_refused() -> None:
    with pytest.raises(ValidationError, match="no certificate"):
        Result(**{**dict(result(FASTER)), "certificate": Certificate()})


def test_a_noisy_comparison_has_an_interval_and_no_verdict() -> None:
    noisy = {**FASTER.model_dump(), "noisy": True}
    assert Comparison(**{**noisy, "verdict": None}).headline == "jax/jit noisy 2.04x (2.01 to 2.07)"
    with pytest.raises(ValidationError, match="a noisy comparison has an interval, but no verdict"):
        Comparison(**noisy)


@pytest.mark.parametrize("numbers", [{"upper": "-1"}, {"lower": "0"}, {"lower": "2.05"}, {"upper": "2.03"}])
def test_a_speedup_is_above_0_and_within_its_interval(numbers: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="a speedup is above 0 and within its interval"):
        Comparison(**{**FASTER.model_dump(), **numbers})


def test_a_verdict_with_disturbed_rounds_that_count_is_refused() -> None:
    disturbed = Disturbed(round=2, reasons=("shared-device of jax/jit: 52 %",))
    with pytest.raises(ValidationError, match="a verdict is not possible if disturbed rounds count"):
        Result(**{**dict(result(FASTER)), "noisy": (disturbed,)})


def test_a_result_is_read_as_it_was_stored(server: Cluster) -> None:
    server.apply(stored(result(FASTER, INVALID)))
    back = BenchmarkResult.model_validate(server.get("bmres", "matmul-chain-all"))
    assert back.result == result(FASTER, INVALID)


@pytest.mark.parametrize("field", ["result", "summary", "expectations"])
def test_a_result_is_never_changed(server: Cluster, field: str) -> None:
    judged = JudgedExpectation(metric="speedup", variant="jax/jit", at_least="2", outcome="met", message="2.04")
    before, after = stored(result(FASTER)), stored(result(FASTER, complete=False), judged)
    server.apply(before)
    done = server.kubectl("apply", "--filename=-", input=json.dumps({**before, field: after[field]}), check=False)
    assert done.stderr == (
        'The BenchmarkResult "matmul-chain-all" is invalid: '
        f"{field}: Forbidden: a result is never changed; delete it if it should not count\n"
    )


@pytest.mark.parametrize("field", ["result", "summary", "expectations"])
def test_no_field_of_a_result_can_be_removed(server: Cluster, field: str) -> None:
    server.apply(stored(result(FASTER)))
    gone = json.dumps([{"op": "remove", "path": f"/{field}"}])
    done = server.kubectl("patch", "bmres", "matmul-chain-all", "--type=json", f"--patch={gone}", check=False)
    assert f"{field}: Required value" in done.stderr


def test_a_results_labels_may_change(server: Cluster) -> None:
    server.apply(stored(result(FASTER)))
    server.kubectl("label", "bmres", "matmul-chain-all", "team=vision")
    assert server.get("bmres", "matmul-chain-all")["metadata"]["labels"] == {"team": "vision"}


def test_kubectl_get_shows_the_verdicts_of_a_result(server: Cluster) -> None:
    server.apply(stored(result(FASTER, INVALID)))
    header, row = server.kubectl("get", "bmres").stdout.splitlines()
    assert header.split() == ["NAME", "WORKLOAD", "CASE", "VALID", "RESULT", "AGE"]
    expected = (
        "matmul-chain-all matmul-chain all false jax/jit faster 2.04x (2.01 to 2.07); jax/scan invalid: throttled"
    )
    assert " ".join(row.split()).startswith(expected)
