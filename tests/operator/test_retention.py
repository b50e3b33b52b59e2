"""Results are kept within limits, and no result of a run in progress is deleted."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.cluster_api.errors import api_error
from accelbench_operator.engine.kinds import Key
from accelbench_operator.runs import retention
from accelbench_operator.runs.retention import Retention, keep_deleting, results_to_delete
from accelbench_operator.runs.summary import Summary
from operator_world.builders import NOW, make_plan, make_summary

SOME = make_summary(make_plan())


def result(
    number: int,
    days: float = 0.0,
    *,
    case: str = "all",
    series: str = "nightly",
    run: str = "over",
    namespace: str = "team",
) -> Summary:
    created = (NOW - timedelta(days=days)).timestamp()
    named = {"name": f"r{number}", "namespace": namespace, "case": case, "series": series, "run_uid": run}
    return replace(SOME, **named, created_timestamp=created)


def names(results: tuple[Summary, ...]) -> list[str]:
    return [each.name for each in results]


def test_the_newest_results_of_each_series_and_case_stay() -> None:
    history = [result(day, day) for day in range(5)]
    other = [result(9, 9.0, case="size-64"), result(8, 8.0, series="weekly")]
    assert names(results_to_delete([*history, *other], Retention(per_case=2), NOW, ())) == ["r4", "r3", "r2"]


def test_the_oldest_results_of_all_series_are_deleted_first() -> None:
    many = [result(number, number, series=f"series-{number}") for number in range(6)]
    assert names(results_to_delete(many, Retention(total=4), NOW, ())) == ["r5", "r4"]


def test_a_namespace_that_stores_much_gives_up_its_own_results() -> None:
    mine = [result(number, 50.0 + number, series=f"mine-{number}") for number in range(3)]
    flood = [result(10 + number, number / 100, series=f"flood-{number}", namespace="noisy") for number in range(9)]
    gone = results_to_delete([*mine, *flood], Retention(total=6), NOW, ())
    assert {each.namespace for each in gone} == {"noisy"}
    assert len(gone) == 6


def test_results_that_are_too_old_are_deleted() -> None:
    history = [result(1, 29.0), result(2, 31.0)]
    assert names(results_to_delete(history, Retention(maximum_age=timedelta(days=30)), NOW, ())) == ["r2"]
    assert names(results_to_delete(history, Retention(), NOW, ())) == []


results = st.lists(
    st.builds(
        result,
        st.integers(0, 10**6),
        st.floats(0, 100),
        case=st.sampled_from("ab"),
        series=st.sampled_from("xy"),
        run=st.sampled_from(["over", "going"]),
        namespace=st.sampled_from(["team", "noisy"]),
    ),
    max_size=30,
    unique_by=lambda each: each.name,
)


@given(results, st.integers(1, 5), st.integers(1, 12))
def test_the_limits_always_hold_and_a_run_in_progress_keeps_its_results(
    held: list[Summary], per_case: int, total: int
) -> None:
    limits = Retention(per_case=per_case, total=total)
    gone = results_to_delete(held, limits, NOW, {"going"})
    kept = [each for each in held if each not in gone]
    assert not any(each.run_uid == "going" for each in gone)
    over = [each for each in kept if each.run_uid == "over"]
    assert len(over) <= total
    for key in {(each.namespace, each.series, each.case) for each in held}:
        mine = [each for each in over if (each.namespace, each.series, each.case) == key]
        assert len(mine) <= per_case
    assert results_to_delete(kept, limits, NOW, {"going"}) == ()
    assert list(gone) == sorted(gone, key=lambda each: each.created_timestamp)


@pytest.mark.parametrize(
    ("status", "asked_for"),
    [(503, ["r1", "r1", "r2"]), (429, ["r1", "r1", "r2"]), (401, ["r1", "r1", "r2"]), (403, ["r1", "r2", "r1"])],
    ids=["unwell", "busy", "unauthorized", "forbidden"],
)
def test_a_failed_deletion_is_tried_again_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch, status: int, asked_for: list[str]
) -> None:
    monkeypatch.setattr(retention, "PERIOD_SECONDS", 0.0)
    held, asked = [result(1).key, result(2).key], []

    async def delete(each: Key) -> None:
        asked.append(each.name)
        if len(asked) == 1:
            raise api_error(status, "no")
        held.remove(each)
        if not held:
            raise asyncio.CancelledError

    async def find() -> tuple[Key, ...]:
        return tuple(held)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(keep_deleting(find, delete))
    assert asked == asked_for


def test_a_bug_in_retention_does_not_end_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PERIOD_SECONDS", 0.0)
    asked = []

    async def find() -> tuple[Key, ...]:
        asked.append(1)
        if len(asked) == 3:
            raise asyncio.CancelledError
        raise OverflowError("year 10000 is out of range")

    async def delete(_: Key) -> None:
        raise AssertionError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(keep_deleting(find, delete))
    assert len(asked) == 3
