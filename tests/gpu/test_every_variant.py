"""Every variant computes on a GPU what the float64 reference says: `make test-gpu`, on a machine that has one."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from accelbench import platforms
from gpu.checks import ENVIRONMENT, Asked, every

HAS_A_GPU = any(Path(file).exists() for file in platforms.find("cuda").files)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_A_GPU, reason="needs an NVIDIA GPU: make test-gpu")]


def checked(asked: Asked) -> dict[str, Any]:
    """What `accelbench check` says of it."""
    done = subprocess.run(asked.command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    (case,) = json.loads(done.stdout)
    (variant,) = case["variants"]
    found: dict[str, Any] = variant
    return found


@pytest.mark.parametrize("asked", every(), ids=str)
def test_a_variant_passes_every_check_on_a_gpu(asked: Asked) -> None:
    found = checked(asked)
    assert found["failure"] is None
    assert {check["name"]: check["reading"] for check in found["checks"] if check["outcome"] == "failed"} == {}
    assert {check["name"]: check["reading"] for check in found["checks"] if check["outcome"] == "passed"}
