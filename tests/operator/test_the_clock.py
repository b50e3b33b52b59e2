from datetime import datetime, timedelta

import pytest

from accelbench_operator.engine.clock import ServerClock
from operator_world.builders import NOW

SAID = "Sun, 01 Mar 2026 12:00:00 GMT"


@pytest.mark.parametrize("wrong", [timedelta(minutes=20), timedelta(minutes=-20), timedelta(days=400)], ids=str)
def test_the_api_servers_time_counts_however_wrong_the_machines_is(wrong: timedelta) -> None:
    clock = ServerClock(lambda: NOW + wrong)
    assert clock() == NOW + wrong
    clock.set_from_header(SAID)
    assert clock() == NOW


def test_an_answer_that_took_its_time_changes_nothing() -> None:
    clock = ServerClock(lambda: NOW + timedelta(seconds=3))
    clock.set_from_header(SAID)
    assert clock() == NOW + timedelta(seconds=3)


def test_a_clock_that_somebody_sets_right_is_right_at_the_next_answer() -> None:
    local = {"time": NOW + timedelta(hours=1)}
    clock = ServerClock(lambda: local["time"])
    clock.set_from_header(SAID)
    local["time"] = NOW + timedelta(seconds=1)
    clock.set_from_header(SAID)
    assert clock() == NOW


@pytest.mark.parametrize("nonsense", ["", "yesterday", "1"])
def test_what_is_no_date_says_nothing(nonsense: str) -> None:
    clock = ServerClock(lambda: NOW)
    clock.set_from_header(nonsense)
    assert clock() == NOW


def test_it_is_a_time_in_utc() -> None:
    clock = ServerClock()
    assert isinstance(clock(), datetime)
    assert clock().utcoffset() == timedelta()
