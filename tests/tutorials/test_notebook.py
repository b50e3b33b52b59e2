"""The page on notebooks compares modules of both frameworks with their gradients, in at most twelve lines."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cheats.trials import Asked, trials

PAGE = (Path(__file__).parents[2] / "docs" / "tutorials" / "notebook.md").read_text()
[CELL] = re.findall(r"^`gradients\.py`:\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
KEPT = """
import pathlib, sys
import accelbench, accelbench.notebook

def keep(arrays, **functions):
    pathlib.Path(sys.argv[1]).write_text(accelbench.notebook.script_text(functions, arrays))

accelbench.compare = keep
"""
"""Keeps the script that the comparison would measure; tests/pages measures it, each night."""


def test_two_modules_of_pytorch_and_one_of_flax_take_at_most_twelve_lines() -> None:
    assert len(list(filter(str.strip, CELL.splitlines()))) <= 12
    assert (CELL.count("torch.nn."), CELL.count("nnx.Linear("), CELL.count("grad(")) == (2, 1, 3)


@pytest.mark.slow
def test_their_gradients_pass_every_check_that_compares_them(tmp_path: Path) -> None:
    script = tmp_path / "gradients_of_modules.py"
    subprocess.run([sys.executable, "-c", KEPT + CELL, str(script)], check=True)
    asked = Asked(script.stem, ("pytorch/eager", "jax/jit", "pytorch_conv/eager"), folder=tmp_path)
    with trials() as run:
        done = run(asked)
    for use in asked.uses:
        assert done.launches[use].failure is None
        assert {name: done.checks(use)[name].outcome for name in ("parity", "formula", "depends-on-inputs")} == {
            "parity": "passed",
            "formula": "passed",
            "depends-on-inputs": "passed",
        }
