"""The next step of a visit: the first task that fits into the time left, and none twice."""

from hypothesis import given
from hypothesis import strategies as st

from gpu_visit.plan import Attempt, Outcome, Step, Task, estimate, is_done, next_step

VISIT = "now"
EARLIER = "earlier"


def task(name: str, *, rounds: tuple[int, int] = (1, 3), start: float = 10, each: float = 20, group: str = "") -> Task:
    return Task(name, "question", *rounds, start, each, group, at_once=4)


def attempt(
    of: Task, outcome: Outcome = "measured", *, rounds: int = 0, seconds: float = 30, visit: str = VISIT
) -> Attempt:
    done = rounds or (of.rounds_min if outcome == "measured" else 0)
    return Attempt(of.name, of.question, visit, outcome, of.rounds_min, done, seconds)


def names(step: Step | None) -> list[str]:
    return [each.name for each in step.tasks] if step else []


tasks = st.lists(
    st.builds(
        Task,
        name=st.sampled_from("abcdefgh"),
        question=st.sampled_from(["old", "new"]),
        rounds_min=st.integers(1, 5),
        rounds_max=st.integers(5, 10),
        start_seconds=st.floats(0.1, 300),
        round_seconds=st.floats(0.1, 300),
        group=st.sampled_from(["", "checks"]),
        at_once=st.integers(1, 8),
    ),
    max_size=8,
    unique_by=lambda each: (each.name, each.rounds_min),
)
attempts = st.lists(
    st.builds(
        Attempt,
        name=st.sampled_from("abcdefgh"),
        question=st.sampled_from(["old", "new"]),
        visit=st.sampled_from([VISIT, EARLIER]),
        outcome=st.sampled_from(["measured", "failed", "overran", "interrupted"]),
        rounds_wanted=st.integers(1, 5),
        rounds=st.integers(1, 10),
        seconds=st.floats(0.1, 900),
    ),
    max_size=8,
)


@given(tasks, attempts, st.floats(0, 1000))
def test_a_step_ends_within_the_time_left_and_is_not_done_yet(
    listed: list[Task], made: list[Attempt], left: float
) -> None:
    step = next_step(listed, made, visit=VISIT, seconds_left=left)
    if step is None:
        return
    assert step.seconds <= left
    first = step.tasks[0]
    start, each = estimate(first, made)
    assert first.rounds_min <= step.rounds <= first.rounds_max
    assert start + first.rounds_min * each <= left
    assert not any(is_done(chosen, made) for chosen in step.tasks)
    assert len(step.tasks) == 1 or len({chosen.group for chosen in step.tasks}) == 1


@given(
    tasks, st.lists(st.sampled_from(["measured", "failed", "overran"]), min_size=40, max_size=40), st.floats(0, 5000)
)
def test_a_visit_ends_without_useless_attempts(listed: list[Task], ends: list[Outcome], left: float) -> None:
    made: list[Attempt] = []
    while step := next_step(listed, made, visit=VISIT, seconds_left=left):
        for chosen in step.tasks:
            outcome = ends[len(made)]
            tried = {(each.name, each.question, each.rounds_wanted) for each in made}
            assert (chosen.name, chosen.question, chosen.rounds_min) not in tried
            made.append(attempt(chosen, outcome, seconds=1))
        left -= 1


def test_the_order_of_the_list_is_the_order_of_tasks() -> None:
    listed = [task("first"), task("second")]
    assert names(next_step(listed, [], visit=VISIT, seconds_left=900)) == ["first"]
    assert names(next_step(listed, [attempt(listed[0])], visit=VISIT, seconds_left=900)) == ["second"]


def test_a_task_without_time_for_its_least_rounds_is_passed_over() -> None:
    listed = [task("long", rounds=(5, 5)), task("short")]
    assert names(next_step(listed, [], visit=VISIT, seconds_left=100)) == ["short"]
    assert next_step(listed, [], visit=VISIT, seconds_left=29) is None


def test_rounds_are_as_many_as_the_time_left_allows() -> None:
    listed = [task("one", rounds=(1, 10))]
    for left, rounds in ((30, 1), (95, 4), (5000, 10)):
        step = next_step(listed, [], visit=VISIT, seconds_left=left)
        assert step
        assert step.rounds == rounds


def test_a_failed_task_comes_last_and_is_not_repeated_in_the_same_visit() -> None:
    listed = [task("broken"), task("sound")]
    before = [attempt(listed[0], "failed", visit=EARLIER)]
    assert names(next_step(listed, before, visit=VISIT, seconds_left=900)) == ["sound"]
    rest = [*before, attempt(listed[1])]
    assert names(next_step(listed, rest, visit=VISIT, seconds_left=900)) == ["broken"]
    assert next_step(listed, [*rest, attempt(listed[0], "failed")], visit=VISIT, seconds_left=900) is None


def test_an_interrupted_task_is_first_in_the_next_visit() -> None:
    listed = [task("interrupted"), task("other")]
    made = [attempt(listed[0], "interrupted", visit=EARLIER)]
    assert names(next_step(listed, made, visit=VISIT, seconds_left=900)) == ["interrupted"]


def test_a_first_figure_comes_before_more_rounds_of_the_same() -> None:
    once, again = task("a", rounds=(1, 1)), task("a", rounds=(3, 3))
    listed = [once, task("b", rounds=(1, 1)), again]
    made = [attempt(once)]
    assert names(next_step(listed, made, visit=VISIT, seconds_left=900)) == ["b"]
    made.append(attempt(listed[1]))
    assert next_step(listed, made, visit=VISIT, seconds_left=900) == Step((again,), 3, 1.5 * (10 + 3 * 20))


def test_a_task_with_enough_rounds_is_not_repeated() -> None:
    once, again = task("a", rounds=(1, 1)), task("a", rounds=(3, 3))
    assert next_step([once, again], [attempt(once, rounds=3)], visit=VISIT, seconds_left=900) is None


def test_a_changed_task_is_not_done_by_an_old_attempt() -> None:
    old = attempt(task("a"), visit=EARLIER)
    asked_anew = Task("a", "another question", 1, 3, 10, 20)
    assert names(next_step([asked_anew], [old], visit=VISIT, seconds_left=900)) == ["a"]


def test_measured_times_replace_estimates() -> None:
    one = task("a", rounds=(1, 1))
    slow = [attempt(one, rounds=1, seconds=300, visit=EARLIER)]
    more = task("a", rounds=(3, 3))
    assert sum(estimate(more, slow)) == 300
    assert next_step([more], slow, visit=VISIT, seconds_left=500) is None


def test_a_task_that_overran_needs_twice_the_time() -> None:
    one = task("a", rounds=(1, 1))
    made = [attempt(one, "overran", seconds=100, visit=EARLIER)]
    assert next_step([one], made, visit=VISIT, seconds_left=199) is None
    assert names(next_step([one], made, visit=VISIT, seconds_left=201)) == ["a"]


def test_tasks_of_a_group_run_at_the_same_time() -> None:
    listed = [task(f"check {number}", group="checks") for number in range(6)]
    listed.insert(2, task("alone"))
    assert names(next_step(listed, [], visit=VISIT, seconds_left=900)) == [f"check {number}" for number in range(4)]
