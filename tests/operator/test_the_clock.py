"""The clock follows the API servers: neither the machine nor one of several API servers can move it alone."""

from datetime import datetime, timedelta
from email.utils import format_datetime
from itertools import cycle, islice

import pytest

from accelbench_operator.engine.clock import MINIMUM_ANSWERS, WINDOW_SECONDS, ServerClock
from operator_world.builders import NOW

SAID = "Sun, 01 Mar 2026 12:00:00 GMT"
WRONG = timedelta(hours=2)


class World:
    """Simulate time, a machine, and API servers whose answers each have an error."""

    def __init__(self, *, machine: timedelta = timedelta()) -> None:
        self.seconds = 0.0
        self.machine = machine
        self.clock = ServerClock(lambda: self.now + self.machine, lambda: self.seconds)

    @property
    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def answers(self, *errors: timedelta, every: float = 2.0) -> None:
        for error in errors:
            self.seconds += every
            self.clock.add_answer(format_datetime(self.now + error))

    @property
    def error(self) -> timedelta:
        return abs(self.clock() - self.now)


RIGHT = timedelta()


@pytest.mark.parametrize("wrong", [timedelta(minutes=20), timedelta(minutes=-20), timedelta(days=400)], ids=str)
def test_the_api_servers_time_counts_even_if_the_machines_clock_is_wrong(wrong: timedelta) -> None:
    world = World(machine=wrong)
    assert world.clock() == NOW + wrong
    world.answers(RIGHT)
    assert world.error < timedelta(seconds=1)


def test_a_slow_answer_does_not_change_the_clock() -> None:
    world = World()
    world.answers(timedelta(seconds=-3))
    assert world.error == timedelta()


def test_setting_the_machines_clock_does_not_move_it() -> None:
    world = World()
    world.answers(*[RIGHT] * MINIMUM_ANSWERS)
    world.machine = timedelta(hours=1)
    assert world.error == timedelta()


@pytest.mark.parametrize("every", [0.01, 2.0, 600.0])
@pytest.mark.parametrize("wrong", [WRONG, -WRONG], ids=str)
def test_one_wrong_api_server_of_three_does_not_move_it(wrong: timedelta, every: float) -> None:
    world = World()
    world.answers(RIGHT)
    for number, error in enumerate(islice(cycle([wrong, RIGHT, RIGHT]), 10 * MINIMUM_ANSWERS)):
        world.answers(error, every=every)
        if number:  # of two answers, none is in the middle
            assert world.error < timedelta(seconds=1)


@pytest.mark.parametrize("every", [1.1, 300.0])
def test_bursts_whose_first_answer_is_wrong_do_not_move_it(every: float) -> None:
    world = World()
    world.answers(RIGHT, RIGHT)
    for _ in range(1000):
        world.answers(WRONG, every=every)
        world.answers(RIGHT, RIGHT, every=0.01)
        assert world.error < timedelta(seconds=1)


def test_one_answer_never_moves_it() -> None:
    world = World()
    world.answers(RIGHT, RIGHT, WRONG)
    assert world.error < timedelta(seconds=1)
    world.answers(*[RIGHT] * MINIMUM_ANSWERS, WRONG)
    assert world.error < timedelta(seconds=1)


def test_it_follows_within_minutes_if_all_api_servers_change_their_clocks() -> None:
    world = World()
    world.answers(*[RIGHT] * 1000)
    world.answers(*[WRONG] * 10)
    assert world.error < timedelta(seconds=1)
    world.answers(*[WRONG] * round(WINDOW_SECONDS / 2.0))
    assert abs(world.error - WRONG) < timedelta(seconds=1)


def test_only_the_latest_answers_are_kept() -> None:
    world = World()
    world.answers(*[RIGHT] * 10_000, every=0.1)
    assert len(world.clock._answers) <= WINDOW_SECONDS + 1


@pytest.mark.parametrize("zone", ["GMT", "-0000", "+0000"])
def test_every_zone_that_means_utc_is_read(zone: str) -> None:
    world = World(machine=WRONG)
    world.clock.add_answer(SAID.replace("GMT", zone))
    assert world.clock() == NOW


@pytest.mark.parametrize("nonsense", ["", "yesterday", "1"])
def test_a_header_that_is_no_date_is_ignored(nonsense: str) -> None:
    world = World()
    world.clock.add_answer(nonsense)
    assert world.clock() == NOW


def test_it_is_a_time_in_utc() -> None:
    clock = ServerClock()
    assert isinstance(clock(), datetime)
    assert clock().utcoffset() == timedelta()
