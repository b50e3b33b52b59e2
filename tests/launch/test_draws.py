"""The numbers that PyTorch draws in float64 are those that it draws in the policy's type."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "draw",
    [
        lambda torch, dtype: torch.rand(4, dtype=dtype),
        lambda torch, dtype: torch.randn_like(torch.zeros(4, dtype=dtype)),
        lambda torch, dtype: torch.rand_like(torch.arange(4), dtype=dtype),
        lambda torch, dtype: torch.empty(4, dtype=dtype).uniform_(),
    ],
    ids=["rand", "randn_like", "rand_like integers", "uniform_"],
)
def test_float64_has_the_numbers_of_float32(draw: Callable[[Any, Any], Any]) -> None:
    import torch

    from accelbench_runner.frameworks.torch_draws import Draws

    torch.manual_seed(0)
    narrow = draw(torch, torch.float32)
    torch.manual_seed(0)
    with Draws(torch.float32):
        wide = draw(torch, torch.float64)
    assert wide.dtype == torch.float64
    assert torch.equal(wide, narrow.double())
