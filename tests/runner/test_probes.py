"""Test that probes of accelbench's own may hang, crash, raise or be slow without a variant failing."""

from collections.abc import Callable
from typing import get_args

import pytest

from accelbench.delivery.log import LaunchFinished, LaunchStarted
from accelbench.document import Document
from accelbench.launch.facts import Probe
from accelbench_runner.protocol import ActivityEnded, ActivityStarted
from accelbench_runner.supervisor.allowance import Allowance, Limit
from accelbench_runner.supervisor.listener import LaunchListener
from runner.supervision import Ended, case_of

Run = Callable[..., Ended]

AT_ONCE = 0.3
"""Seconds that a probe that hangs may take in these tests; on a busy machine one that crashes needs longer for that."""
ENDS = {
    "hangs": "did not finish within 0.3 s",
    "crashes": "crashed (SIGSEGV)",
    "exits": "ended the process with status",
}


def limit(how: str) -> dict[str, float]:
    return {"probe_seconds": AT_ONCE} if how == "hangs" else {}


def unchecked(ended: Ended, variant: str) -> list[dict[str, str]]:
    return [launch.get("unchecked", {}) for launch in ended.launches if launch["variant"] == variant]


@pytest.mark.parametrize(
    ("probe", "how"),
    [
        ("limits", "hangs"),
        ("synchronisation", "crashes"),
        ("limits", "exits"),
        pytest.param("synchronisation", "hangs", marks=pytest.mark.nightly),
        pytest.param("limits", "crashes", marks=pytest.mark.nightly),
        pytest.param("synchronisation", "exits", marks=pytest.mark.nightly),
    ],
)
def test_a_probe_that_fails_after_the_blocks_leaves_the_measurement_as_it_was(run: Run, probe: str, how: str) -> None:
    name = f"{probe}-{how}"
    ended = run(case_of("fine", name), **limit(how))
    assert ended.status == 0
    assert ended.result.complete
    assert [variant.failure for variant in ended.result.variants] == [None, None]
    assert [launch.round for launch in ended.variant(name).launches] == [1, 2]
    assert len([event for event in ended.events if isinstance(event, LaunchStarted)]) == 4
    for reasons in unchecked(ended, name):
        assert reasons[probe].startswith(f"accelbench's own probe `{probe}` {ENDS[how]}")
        assert reasons[probe].endswith("in round 1")
    assert probe in unchecked(ended, "fine")[1]  # whoever is launched later does without, too


@pytest.mark.parametrize("how", ENDS)
def test_a_launch_whose_probe_prevents_measuring_is_repeated_without_the_probe(run: Run, how: str) -> None:
    name = f"watch-{how}"
    ended = run(case_of("fine", name), **limit(how))
    assert ended.status == 0
    assert [variant.failure for variant in ended.result.variants] == [None, None]
    assert [launch.round for launch in ended.variant(name).launches] == [1, 2]
    finished = [event for event in ended.events if isinstance(event, LaunchFinished) and event.variant == name]
    assert [(event.round, event.failure, event.unfinished) for event in finished] == [
        (1, None, "probe"),
        (1, None, None),
        (2, None, None),
    ]
    [note] = ended.result.notes
    assert note.startswith(f"accelbench's own probe `watch` {ENDS[how]}")
    assert note.endswith(f"in round 1: {name} was launched again without it")


def test_a_monitor_that_crashes_between_blocks_is_a_failed_probe_too(run: Run) -> None:
    ended = run(case_of("glance-crashes", "fine"))
    assert ended.variant("glance-crashes").failure is None
    finished = [event for event in ended.events if isinstance(event, LaunchFinished)]
    assert [event.unfinished for event in finished if event.variant == "glance-crashes"] == ["probe", None, None]
    assert "probe `watch`" in ended.result.notes[0]


@pytest.mark.parametrize("probe", ["watch", "limits", "synchronisation"])
def test_an_exception_of_a_probe_is_kept_as_the_reason_of_its_missing_answer(run: Run, probe: str) -> None:
    ended = run(case_of("fine", f"{probe}-raises"))
    assert len([event for event in ended.events if isinstance(event, LaunchStarted)]) == 4
    assert ended.variant(f"{probe}-raises").failure is None
    reason = {probe: f"accelbench's own probe `{probe}` raised ValueError: no answer"}
    assert unchecked(ended, f"{probe}-raises") == [reason, reason]
    assert unchecked(ended, "fine") == [{}, {}]


def test_slow_probes_that_answer_have_no_effect(run: Run) -> None:
    names = ("watch-slow", "limits-slow", "synchronisation-slow", "warm-slow")
    ended = run(case_of(*names, rounds=1))
    assert ended.result.complete
    assert ended.result.rounds == 1
    assert [variant.failure for variant in ended.result.variants] == [None] * len(names)
    assert [unchecked(ended, name) for name in names] == [[{}]] * len(names)
    assert [launch["warm"].get("failure") for launch in ended.launches] == [None] * len(names)


@pytest.mark.parametrize("probe", get_args(Probe))
def test_the_time_of_a_probe_does_not_shorten_the_time_of_its_launch(probe: Probe) -> None:
    now = 0.0
    allowance = Allowance(Limit(10.0, "its share"), case_seconds=600.0, probe_limit_seconds=20.0, clock=lambda: now)
    listener = LaunchListener(forward=lambda *_: None, phase_reached=lambda _: None, allowance=allowance)

    def seconds_left(message: Document) -> float:
        listener.received("messages", message.to_json().encode() + b"\n")
        return listener.seconds_left(now)

    now = 4.0
    assert seconds_left(ActivityStarted(name=probe, alone=True)) == 20.0
    now = 23.0
    assert seconds_left(ActivityEnded(name=probe, seconds=19.0)) == 6.0
    assert seconds_left(ActivityStarted(name=probe)) == 6.0  # steps of the variant's are no probe


def test_a_failure_of_a_required_probe_is_an_internal_error_that_names_it(run: Run) -> None:
    ended = run(case_of("watch-even-so-crashes", "fine"))
    assert ended.status == 3
    assert ended.headline.state == "failed"
    assert "accelbench's own probe `watch` crashed (SIGSEGV)" in ended.headline.message
    partial = ended.log.latest("checkpoint", ended.headline.digest)
    assert partial is not None
    assert [variant.failure for variant in partial.variants] == [None, None]


@pytest.mark.parametrize(("how", "expected_text"), [("hangs", "the limit of a warm probe"), ("crashes", "SIGSEGV")])
def test_only_the_warm_times_are_missing_if_a_warm_probe_fails(run: Run, how: str, expected_text: str) -> None:
    ended = run(case_of("fine", f"warm-{how}"), **limit(how))
    variant = ended.variant(f"warm-{how}")
    assert variant.failure is None
    assert len(variant.launches) == 2
    assert variant.warm_phases == ()
    [warm] = [launch["warm"] for launch in ended.launches if launch["variant"] == f"warm-{how}" and "warm" in launch]
    assert expected_text in warm["failure"]  # and it is not made again in round 2
