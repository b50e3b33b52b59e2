"""One pass of calls: exceptions are caught, compilations counted, and returned values reported."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from accelbench.catalogue.observations import MAXIMUM_CHARACTERS, Scalar
from accelbench.catalogue.workload_checks import InvalidWorkloadError, check_step
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import Adapter, Compilations
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch.observe import make_calls, observations


class Counting:
    """A framework that compiles whatever is greater than all before it, and takes a TypeError for lack of memory."""

    def __init__(self) -> None:
        self.greatest = 0
        self.causes: list[str] = []

    def step(self, state: int, batch: Any) -> tuple[int, Any]:
        if isinstance(batch, BaseException):
            raise batch
        if batch > self.greatest:
            self.greatest = batch
            self.causes.append(f"{batch} was compiled")
        return state + batch, np.array(batch)

    @property
    def accounting(self) -> "Counting":
        return self

    def compilations(self) -> Compilations:
        return Compilations(causes=list(self.causes))

    def out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, TypeError)

    def to_numpy(self, arrays: dict[str, Any]) -> dict[str, Any]:
        return {name: np.asarray(array) for name, array in arrays.items()}


def program_of(framework: Counting, batches: Sequence[Any], observe: Any = lambda _outs: {}) -> Program:
    return Program(state=0, step=framework.step, batches=batches, placed=True, observe=observe)


def observe(batches: Sequence[Any], make: Any = lambda _outs: {}, declared: Sequence[str] = ()) -> dict[str, Scalar]:
    framework: Any = Counting()
    adapter: Adapter = framework
    program = program_of(framework, batches, make)
    work = Work(fresh=lambda: 0, call=program.step, batches=batches[0], synchronise=lambda _: None, units=1)
    calls, _ = make_calls(adapter, program, work)
    return observations(adapter, program, calls, dict.fromkeys(declared, ""))


def test_a_step_that_returns_no_pair_is_a_failure() -> None:
    framework: Any = Counting()
    program = Program(state=0, step=lambda _state, _batch: np.zeros((2, 8)), placed=True)
    work = Work(
        fresh=lambda: 0,
        call=program.step,
        batches={},
        synchronise=lambda _: None,
        units=1,
        check=partial(check_step, program.step),
    )
    with pytest.raises(InvalidWorkloadError, match=r"test_calls\.py, line .* an array of shape \(2, 8\)"):
        make_calls(framework, program, work)


def test_compilations_are_counted_call_by_call() -> None:
    found = observe([2, 1, 3, 3])
    assert found == {
        "calls": 4,
        "compilations": 2,
        "compilationsByCall": "1, 0, 1, 0",
        "raised": "nothing",
        "raisedCalls": 0,
    }


def test_an_exception_of_a_call_is_observed_and_the_next_call_gets_the_earlier_state() -> None:
    framework: Any = Counting()
    program = program_of(framework, [1, ValueError("no such branch\nand much more"), KeyError("other"), 2])
    work = Work(fresh=lambda: 0, call=program.step, batches=1, synchronise=lambda _: None, units=1)
    calls, state = make_calls(framework, program, work)
    assert state == 3
    found = observations(framework, program, calls, {})
    assert (found["raised"], found["raisedCalls"], found["message"]) == ("ValueError", 2, "no such branch")


@pytest.mark.parametrize("error", [MemoryError(), TypeError("the framework's own")])
def test_lack_of_memory_is_a_failure_and_no_observation(error: Exception) -> None:
    with pytest.raises(type(error)):
        observe([1, error])


def test_an_exception_at_synchronisation_belongs_to_its_call() -> None:
    framework: Any = Counting()
    program = program_of(framework, [1, 2])

    def late(value: Any) -> None:
        if value == (1, 1):
            raise ValueError("found out late")

    work = Work(fresh=lambda: 0, call=program.step, batches=1, synchronise=late, units=1)
    calls, state = make_calls(framework, program, work)
    assert [type(call.raised) for call in calls] == [ValueError, type(None)]
    assert (calls[0].out, state) == (None, 2)


@pytest.mark.parametrize(
    ("value", "expected_value"),
    [
        (3, 3),
        (True, True),
        (np.float32(0.5), 0.5),
        (np.array(7), 7),
        (np.True_, True),
        (float("nan"), "nan"),
        ("text", "text"),
        ([1, None, True, 0.25], "1, -, true, 0.25"),
        (np.array([1.5, 2.0]), "1.5, 2"),
        (["x" * 200], "x" * (MAXIMUM_CHARACTERS - 1) + "…"),
    ],
    ids=str,
)
def test_a_value_is_a_number_a_truth_a_text_or_a_list_of_these(value: Any, expected_value: Scalar) -> None:
    assert observe([1], lambda _outs: {"own": value}, ["own"])["own"] == expected_value


def test_the_program_is_shown_every_out_in_numpy_and_none_for_a_call_that_raised() -> None:
    seen: list[Any] = []
    observe([1, ValueError(), 2], lambda outs: seen.extend(outs) or {})
    assert isinstance(seen[0], np.ndarray)
    assert [None if out is None else int(out) for out in seen] == [1, None, 2]


def test_only_observations_that_the_workload_names_are_accepted() -> None:
    with pytest.raises(ValueError, match="observes speed, which `observes` of the workload does not name"):
        observe([1], lambda _outs: {"speed": 1}, ["values"])


def test_values_of_other_types_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="own is observed as a object"):
        observe([1], lambda _outs: {"own": object()}, ["own"])
