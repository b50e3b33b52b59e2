"""The handling of losses in xor, without any framework."""

from typing import Any

import pytest

from accelbench.workloads._xor import step_over_samples
from accelbench.workloads.xor import Xor


class Loss:
    """A loss that is computed when somebody asks for it."""

    def __init__(self, told: list[str], sample: int) -> None:
        self._told, self._sample = told, sample

    def tolist(self) -> float:
        self._told.append(f"read {self._sample}")
        return float(self._sample)


@pytest.mark.parametrize(
    ("losses", "told"),
    [
        ("read", ["train 1", "read 1", "train 2", "read 2"]),
        ("kept", ["train 1", "train 2"]),
    ],
)
def test_a_loss_is_read_before_the_next_sample_on_request(losses: Any, told: list[str]) -> None:
    heard: list[str] = []

    def train(state: int, x: int, _y: None) -> tuple[int, Loss]:
        heard.append(f"train {x}")
        return state + 1, Loss(heard, x)

    step = step_over_samples(Xor.Parameters(losses=losses), train, float)
    state, out = step(0, [(1, None), (2, None)])
    assert (state, heard) == (2, told)
    assert [type(loss) for loss in out] == ([float, float] if losses == "read" else [Loss, Loss])


def test_a_sample_is_converted_just_before_its_step_on_request() -> None:
    heard: list[str] = []

    def convert(number: int) -> int:
        heard.append(f"convert {number}")
        return 10 * number

    def train(state: int, x: int, y: int) -> tuple[int, int]:
        heard.append(f"train {x} {y}")
        return state, 0

    step_over_samples(Xor.Parameters(samples="converted"), train, convert)(0, [(1, 2), (3, 4)])
    assert heard == ["convert 1", "convert 2", "train 10 20", "convert 3", "convert 4", "train 30 40"]


def test_the_requested_number_of_epochs_is_compared() -> None:
    assert Xor().measure(Xor.Parameters(compared_epochs=10_000)).parity_units == 10_000
