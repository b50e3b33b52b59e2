"""The numbers that PyTorch draws in float64 are those that it draws in the policy's type."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from accelbench_runner.frameworks.torch_draws import Draws  # noqa: E402 - needs PyTorch

pytestmark = pytest.mark.slow

INTEGERS = torch.arange(4)
NUMBERS = torch.zeros(4)


@pytest.mark.parametrize(
    "draw",
    [
        lambda dtype: torch.rand(4, dtype=dtype),
        lambda dtype: torch.randn_like(NUMBERS.to(dtype)),
        lambda dtype: torch.rand_like(INTEGERS, dtype=dtype),
        lambda dtype: torch.empty(4, dtype=dtype).uniform_(),
    ],
    ids=["rand", "randn_like", "rand_like integers", "uniform_"],
)
def test_float64_has_the_numbers_of_float32(draw: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    narrow = draw(torch.float32)
    torch.manual_seed(0)
    with Draws(torch.float32):
        wide = draw(torch.float64)
    assert wide.dtype == torch.float64
    assert torch.equal(wide, narrow.double())
