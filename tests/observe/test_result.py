"""From what launches report to what a result says of it: pure, whatever a launch may report."""

import pytest

from accelbench.api.observation import Observation
from accelbench.api.result import MAXIMUM_BYTES, Result
from accelbench.launch.record import LaunchRecord
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.launch.observe import check_names
from accelbench_runner.supervisor.assemble import CaseTiming, assemble
from judge.launches import BASELINE, VARIANT, a_case, a_failure, a_launch, with_facts

TIMING = CaseTiming(
    started="2026-01-01T00:00:00Z",
    finished="2026-01-01T00:01:00Z",
    total_seconds=60,
    judge_seconds=1,
    complete=True,
)
STEADY_ONLY = {"clock", "unsteady", "parity", "throttled", "unsynchronised", "impossible-speed", "compile-cache"}


def observing(variant: str, number: int, **found: object) -> LaunchRecord:
    facts = {"protocol": "observe", "observations": {"calls": 4, "compilations": 1, "raised": "nothing"} | found}
    return a_launch(variant, number, facts=facts, parity=None).model_copy(update={"blocks": ()})


def assess(launches: list[LaunchRecord], rounds_min: int = 3) -> Assessment:
    outputs = {f"{launch.round}/{launch.variant}": "/nowhere" for launch in launches}
    case = a_case(rounds_min=rounds_min)
    return judge(JudgeRequest(case=case, launches=tuple(launches), outputs=outputs, directory="/nowhere"))


def result_of(launches: list[LaunchRecord]) -> Result:
    return assemble(a_case(rounds_min=3), launches, assess(launches), TIMING)


def rounds(count: int) -> list[LaunchRecord]:
    return [observing(variant, number) for number in range(1, count + 1) for variant in (BASELINE, VARIANT)]


def of(result: Result, name: str, variant: str = VARIANT) -> Observation:
    observations = next(each for each in result.observations if each.variant == variant)
    return next(each for each in observations.found if each.name == name)


def test_nothing_is_compared_and_measuring_ends_with_the_minimum_of_rounds() -> None:
    assert assess(rounds(2)).stop is None
    found = assess(rounds(3))
    assert (found.stop, found.comparisons, found.tail_comparisons, found.rounds) == ("TargetMet", (), (), 3)


def test_a_failed_variant_does_not_end_the_others() -> None:
    launches = [a_failure(BASELINE, 1), observing(VARIANT, 1)]
    assert assess(launches).stop is None
    assert [each.variant for each in result_of(launches).observations] == [VARIANT]


def test_the_certificate_has_the_checks_that_need_no_time() -> None:
    checks = assess(rounds(3)).certificate.checks
    asked = {"gradients", "precision", "same-inputs", "same-protocol", "threads", "wrong-device"}
    assert {check.name for check in checks} == asked
    assert {check.outcome for check in checks} == {"passed"}


def test_a_timed_launch_among_them_brings_the_other_checks_back() -> None:
    names = {
        check.name for check in assess([*rounds(2), a_launch(VARIANT, 3), observing(BASELINE, 3)]).certificate.checks
    }
    assert names >= STEADY_ONLY


def test_a_launch_that_times_blocks_and_claims_to_observe_has_every_check() -> None:
    timed = [with_facts(launch, protocol="observe") for launch in (a_launch(BASELINE, 1), a_launch(VARIANT, 1))]
    assert {check.name for check in assess(timed).certificate.checks} >= STEADY_ONLY
    assert result_of(timed).observations == ()


def test_other_load_disturbs_no_observation() -> None:
    crowded = {"neighbours": {"busy_seconds": 1.0, "offered_seconds": 2.0}}
    launches = [with_facts(launch, **crowded) for launch in rounds(3)]
    found = assess(launches)
    assert (found.quarantined, found.stop) == ((), "TargetMet")


def test_an_observation_on_which_launches_agree_is_one_value() -> None:
    result = result_of(rounds(3))
    assert of(result, "compilations").model_dump() == {
        "name": "compilations",
        "type": "number",
        "values": ({"value": "1", "launches": 3},),
    }
    assert result.valid
    assert result.headline == f"{BASELINE} compiled once in 4 calls; {VARIANT} compiled once in 4 calls"


def test_differing_observations_are_listed_with_the_most_frequent_first() -> None:
    launches = [*rounds(2), observing(BASELINE, 3), observing(VARIANT, 3, compilations=2)]
    result = result_of(launches)
    assert of(result, "compilations").text == "1 in 2 launches, 2 in 1"
    assert f"{VARIANT} compiled 1 or 2 times in 4 calls" in result.headline


def test_exceptions_come_first() -> None:
    launches = [observing(variant, 1, raised="KeyReuseError", raisedCalls=3) for variant in (BASELINE, VARIANT)]
    assert result_of(launches).headline.startswith(f"{BASELINE} raised KeyReuseError")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, "truth", "true"),
        (0.1, "number", "0.1"),
        (1e300, "number", "1e+300"),
        (7, "number", "7"),
        ("a", "text", "a"),
    ],
)
def test_values_have_types(value: object, kind: str, text: str) -> None:
    found = of(result_of([observing(VARIANT, 1, own=value)]), "own")
    assert (found.type, found.text) == (kind, text)


@pytest.mark.parametrize(
    "reported",
    [
        None,
        "a text",
        {"calls": [1]},
        {"calls": None},
        {"Not a name": 1},
        {"own": "x" * 1000},
        {"own": float("nan")},
        {f"own{number}": number for number in range(100)},
    ],
)
def test_impossible_observations_of_a_launch_are_ignored(reported: object) -> None:
    launch = observing(VARIANT, 1)
    launch = with_facts(launch, observations=reported)
    assert result_of([launch]).observations == ()


def test_the_maximum_of_observations_fits_a_result() -> None:
    names = [f"pytorch/compile-{'x' * 40}-{number}" for number in range(16)]
    own = {f"observation{number}{'x' * 18}": f"{number}" + "y" * 119 for number in range(8)}
    launches = [observing(name, 1, **own) for name in names]
    case = a_case(*names)
    result = assemble(case, launches, judge(JudgeRequest(case=case, launches=tuple(launches), directory="/")), TIMING)
    assert len(result.to_json().encode()) <= MAXIMUM_BYTES
    assert of(result, "compilations", names[-1]).text == "1"
    assert result.notes == ()


def test_a_workloads_own_names_are_not_those_of_every_launch() -> None:
    check_names({"values": "What each call returned."})
    for name in ("raised", "with space", "x" * 33):
        with pytest.raises(ValueError, match=name):
            check_names({name: ""})
