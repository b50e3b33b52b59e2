import json

from hypothesis import given
from hypothesis import strategies as st

from accelbench.report import launches
from accelbench.report.plots.blocks import sample_indices
from report import sample


def document(**changes: object) -> str:
    parity = {"units": 1, "finite": True, "worstRatio": 0.1, "worstArray": "x", "detail": ""}
    launch = {"variant": "jax/jit", "round": 1, "position": 0, "wallSeconds": 9.0, "parity": parity}
    return json.dumps(launch | {"blocks": [{"units": 4, "seconds": 2.0}]} | changes)


def test_blocks_become_seconds_a_unit_in_the_order_of_rounds() -> None:
    found = launches.series_from_documents([document(round=2), document(position=1, facts={"any": "thing"})])
    assert [(each.round, each.seconds, each.value) for each in found["jax/jit"]] == [
        (1, (0.5,), 0.5),
        (2, (0.5,), 0.5),
    ]


def test_a_launch_of_a_round_that_was_never_judged_is_not_drawn() -> None:
    assert launches.series_from_documents([document(parity=None)]) == {}


def test_the_time_of_an_episode_is_its_mean_as_in_its_verdict() -> None:
    blocks = [{"units": 1, "seconds": seconds} for seconds in (1.0, 2.0, 6.0)]
    [found] = launches.series_from_documents([document(blocks=blocks, facts={"protocol": "episode"})])["jax/jit"]
    assert found.value == 3.0


def test_launches_without_blocks_are_left_out() -> None:
    odd = [
        "",
        "{",
        "[]",
        "{}",
        document(blocks=[]),
        document(blocks=[{"units": 1, "seconds": -1}]),
        document(round="x"),
    ]
    assert launches.series_from_documents(odd) == {}


def test_a_result_gives_each_launchs_summary() -> None:
    found = launches.series_from_result(sample.result())
    assert [len(each) for each in found.values()] == [6, 6, 6]
    assert not any(each.has_blocks for series in found.values() for each in series)


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=500), st.integers(2, 100))
def test_thinning_keeps_the_minimum_and_the_maximum(values: list[float], most: int) -> None:
    kept = [values[index] for index in sample_indices(values, most)]
    assert {min(values), max(values)} <= set(kept)
    assert len(kept) <= most
