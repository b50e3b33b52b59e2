"""A second start on the caches of the first: what is compiled cold, and what a cache answers."""

from pathlib import Path

import pytest

from accelbench_runner.protocol import Done
from launch.launching import case, launch

pytestmark = pytest.mark.slow

SMALL = {"size": 32, "length": 2}


@pytest.mark.parametrize("use", ["jax/jit", "jax/op-by-op", "pytorch/compile"])
def test_a_launch_misses_the_compile_cache_and_its_warm_probe_hits_it(use: str, tmp_path: Path) -> None:
    cold = launch(tmp_path, case("matmul-chain", use, SMALL))
    written = (tmp_path / "outputs.npz").stat().st_mtime_ns
    warm = launch(tmp_path, case("matmul-chain", use, SMALL), probe=True)
    assert cold.facts["compileCache"]["hits"] == 0
    assert cold.facts["compileCache"]["misses"] > 0
    assert cold.facts["compileCache"]["before"] == 0 < warm.facts["compileCache"]["before"]
    assert warm.facts["compileCache"]["hits"] > 0
    assert warm.facts["compileCache"]["misses"] == 0
    assert list(warm.phases) == ["import", "device-init", "setup", "compile", "first-step"]
    assert isinstance(warm.messages[-1], Done)
    assert not warm.blocks
    assert (tmp_path / "outputs.npz").stat().st_mtime_ns == written


def test_no_cache_is_reported_if_nothing_is_compiled(tmp_path: Path) -> None:
    assert "compileCache" not in launch(tmp_path, case("matmul-chain", "pytorch/eager", SMALL), probe=True).facts
