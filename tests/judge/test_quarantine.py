"""Test that a disturbed round counts for no variant, and changes no verdict."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.launch.record import Block, LaunchRecord
from accelbench.validity import throttled
from accelbench.validity.check import DisturbanceLimit
from accelbench.validity.quarantine import split_disturbed
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from judge.launches import (
    BASELINE,
    GOOD_FACTS,
    GOOD_PARITY,
    VARIANT,
    a_case,
    a_failure,
    a_launch,
    rounds_of,
    with_facts,
)

CROWDED = {"neighbours": {"busy_seconds": 0.8, "offered_seconds": 2.0}}
THROTTLED = {"throttling": {"periods": 9, "seconds": 1.0}}


def assess(*launches: LaunchRecord, **measurement: Any) -> Assessment:
    return judge(JudgeRequest(case=a_case(**measurement), launches=launches, directory="/nowhere"))


def a_round(number: int, *, facts: dict[str, Any] | None = None, slower: float = 1.0) -> tuple[LaunchRecord, ...]:
    """Return a round whose baseline takes twice as long as the variant, times `slower` if `facts` disturb it."""
    return (
        a_launch(BASELINE, number, seconds=0.02 * slower, facts=facts),
        a_launch(VARIANT, number, seconds=0.01),
    )


def test_a_disturbance_of_one_side_of_a_round_changes_no_verdict() -> None:
    found = assess(*a_round(1), *a_round(2, facts=CROWDED, slower=8), *a_round(3), *a_round(4), rounds_min=3)
    (comparison,) = found.comparisons
    assert (found.rounds, comparison.rounds, comparison.verdict) == (3, 3, "faster")
    assert comparison.speedup == "2"
    (quarantined,) = found.quarantined
    assert quarantined.round == 2
    assert [reason.partition(":")[0] for reason in quarantined.reasons] == ["shared-device for pytorch/eager"]


def test_a_quarantined_round_counts_neither_for_the_minimum_nor_the_maximum_of_rounds() -> None:
    launches = [launch for number in (1, 2, 3) for launch in a_round(number)]
    assert assess(*launches, rounds_min=3).stop == "TargetMet"
    launches[-2:] = a_round(3, facts=THROTTLED)
    found = assess(*launches, rounds_min=3, rounds_max=3)
    assert (found.stop, found.comparisons[0].verdict) == (None, "inconclusive")


def test_nothing_is_valid_if_every_round_was_disturbed_and_measuring_continues() -> None:
    found = assess(*a_round(1, facts=CROWDED), *a_round(2, facts=THROTTLED))
    (comparison,) = found.comparisons
    assert (found.rounds, found.stop, comparison.verdict, comparison.speedup) == (0, None, None, None)
    assert set(comparison.invalid) == {"shared-device", "throttled"}


def test_disturbed_rounds_count_if_noise_is_accepted_and_nothing_has_a_verdict() -> None:
    launches = [*a_round(1), *a_round(2, facts=CROWDED), *a_round(3, facts=THROTTLED, slower=1.1)]
    found = assess(*launches, rounds_min=3, rounds_max=3, accept_noise=True)
    (comparison,) = found.comparisons
    assert (found.rounds, comparison.rounds, found.stop) == (3, 3, "MaximumRoundsReached")
    assert (comparison.verdict, comparison.noisy, comparison.invalid) == (None, True, ())
    assert comparison.speedup is not None
    assert comparison.lower is not None
    assert float(comparison.lower) < 2 < float(comparison.speedup)
    assert float(comparison.speedup) == pytest.approx(2 * 1.1 ** (1 / 3), rel=1e-3)
    assert found.quarantined == ()
    assert [each.round for each in found.noisy] == [2, 3]
    assert {check.name for check in found.certificate.failed_checks(BASELINE)} == {"shared-device", "throttled"}


def test_a_verdict_is_as_usual_if_accepted_noise_did_not_occur() -> None:
    launches = [launch for number in (1, 2, 3) for launch in a_round(number)]
    quiet = assess(*launches, rounds_min=3)
    assert assess(*launches, rounds_min=3, accept_noise=True) == quiet
    assert quiet.comparisons[0].verdict == "faster"


def test_accepted_noise_does_not_excuse_a_wrong_result() -> None:
    disturbed = a_launch(VARIANT, 1, facts=CROWDED, parity=GOOD_PARITY.model_copy(update={"worst_ratio": 9.0}))
    found = assess(a_round(1)[0], disturbed, accept_noise=True)
    assert found.comparisons[0].invalid == ("parity",)
    assert found.comparisons[0].noisy is False
    assert found.stop == "NothingToCompare"


def test_blocks_that_drift_under_other_load_keep_an_interval_if_noise_is_accepted() -> None:
    ramp = tuple(Block(units=1, seconds=0.02 * (1 + index / 20)) for index in range(40))
    launches = [
        launch.model_copy(update={"blocks": ramp}) if launch.variant == VARIANT else launch
        for number in (1, 2, 3)
        for launch in a_round(number, facts=CROWDED)
    ]
    found = assess(*launches, rounds_min=3, rounds_max=3, accept_noise=True)
    assert "unsteady" in {check.name for check in found.certificate.failed_checks(VARIANT)}
    assert (found.comparisons[0].noisy, found.stop) == (True, "TargetMet")
    quiet = [with_facts(launch, **GOOD_FACTS) for launch in launches]
    sound = assess(*quiet, rounds_min=3, accept_noise=True)
    assert (sound.comparisons[0].invalid, sound.stop) == (("unsteady",), "NothingToCompare")


def test_a_disturbance_that_only_widens_the_interval_is_kept_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    stolen = {"throttling": {"periods": 0, "seconds": 0.0, "steal_seconds": 0.22}}
    launches = [*a_round(1), *a_round(2, facts=stolen), *a_round(3)]
    assert [each.round for each in assess(*launches, rounds_min=3).quarantined] == [2]
    monkeypatch.setattr(throttled, "STEAL", DisturbanceLimit(widens=0.05, biases=0.5))
    found = assess(*launches, rounds_min=3)
    assert (found.quarantined, found.noisy, found.comparisons[0].verdict) == ((), (), "faster")
    checked = {check.variant: check for check in found.certificate.checks if check.name == "throttled"}[BASELINE]
    assert (checked.outcome, "11 %" in checked.reading) == ("passed", True)


def test_a_wrong_result_is_found_in_a_disturbed_round_too() -> None:
    disturbed = a_launch(VARIANT, 2, facts=CROWDED, parity=GOOD_PARITY.model_copy(update={"worst_ratio": 9.0}))
    found = assess(*a_round(1), a_round(2)[0], disturbed)
    assert found.comparisons[0].invalid == ("parity",)
    assert found.stop == "NothingToCompare"


def test_a_quieter_machine_does_not_correct_a_wrong_result() -> None:
    wrong = GOOD_PARITY.model_copy(update={"worst_ratio": 9.0})
    launches = [a_launch(variant, 1, facts=CROWDED, parity=wrong) for variant in (BASELINE, VARIANT)]
    assert assess(*launches).stop == "NothingToCompare"


def test_a_failure_in_a_disturbed_round_is_kept() -> None:
    found = assess(a_launch(BASELINE, 1, facts=CROWDED), a_failure(VARIANT, 1))
    assert (found.comparisons[0].verdict, found.comparisons[0].speedup) == (None, None)


def test_the_sentences_about_other_load(golden: Callable[[str, str], None]) -> None:
    noisy = [*a_round(1), *a_round(2, facts=CROWDED), *a_round(3, facts=THROTTLED, slower=1.1)]
    assessments = {
        "every round disturbed": assess(*a_round(1, facts=CROWDED), *a_round(2, facts=THROTTLED)),
        "noise accepted": assess(*noisy, rounds_min=3, rounds_max=3, accept_noise=True),
        "a failure in a disturbed round": assess(a_launch(BASELINE, 1, facts=CROWDED), a_failure(VARIANT, 1)),
    }
    sentences = [f"{name}: {found.comparisons[0].sentence}\n" for name, found in assessments.items()]
    golden("sentences-next-to-other-load.txt", "".join(sentences))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=8))
def test_every_launch_either_counts_or_is_quarantined_with_its_whole_round(disturbed: list[tuple[bool, bool]]) -> None:
    launches = [
        with_facts(launch, **(CROWDED if crowded else {}))
        for launch, crowded in zip(
            rounds_of({BASELINE: [0.02] * len(disturbed), VARIANT: [0.01] * len(disturbed)}),
            [side for pair in disturbed for side in pair],
            strict=True,
        )
    ]
    split = split_disturbed(a_case(), launches)
    bad = {number for number, sides in enumerate(disturbed, start=1) if any(sides)}
    assert split.reasons.keys() == bad
    assert sorted(map(id, split.counted + split.quarantined)) == sorted(map(id, launches))
    assert {launch.round for launch in split.quarantined} == (bad if len(bad) < len(disturbed) else set())
    assert split.all_disturbed == (len(bad) == len(disturbed))
