"""Setups: functions that make further arguments of a program once, before anything is timed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs, script
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Program, Workload

SCRIPT = '''"""Multiply by a matrix that is made once."""


def arrays(rng, n: int = 3):
    return {"diagonal": rng.standard_normal(n), "x": rng.standard_normal(n)}


def setup_numpy(diagonal, n):
    import numpy as np

    return {"matrix": np.diag(diagonal), "times": n, "unused": None}


def numpy(matrix, x, times, unused):
    return times * (matrix @ x)
'''
Load = Callable[[str], Workload]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Workload:
        path = tmp_path / str(len(list(tmp_path.iterdir()))) / "product.py"
        path.parent.mkdir()
        path.write_text(text)
        with script.use(path):
            return catalogue.find("product")

    return load


class Tools:
    def put(self, arrays: Any) -> Any:
        return {name: np.array(array, np.float32) for name, array in arrays.items()}


def build(workload: Workload, method: str = "numpy") -> Program:
    arrays = inputs.generate(workload, workload.Parameters(), seed=1)
    program: Program = getattr(workload, method)(workload.Parameters(), arrays, Tools())
    return program


def test_the_results_of_a_setup_are_passed_to_the_function(load: Load) -> None:
    workload = load(SCRIPT)
    program = build(workload)
    batch = program.batches[0]
    assert set(batch) == {"matrix", "x"}  # what the setup alone takes is not passed, and no Python value is an array
    assert batch["matrix"].dtype == np.float32  # a NumPy array becomes one of the framework
    diagonal = np.diag(batch["matrix"])
    np.testing.assert_array_equal(program.step({}, batch)[1], 3 * (diagonal * batch["x"]))
    assert workload.setup_function("numpy").endswith("line 8: setup_numpy()")


def test_a_setup_may_replace_an_array(load: Load) -> None:
    text = SCRIPT.replace('"matrix": np.diag(diagonal)', '"x": np.full(1, 7), "matrix": np.eye(1)')
    np.testing.assert_array_equal(build(load(text)).step({}, build(load(text)).batches[0])[1], [21])


def test_a_setup_applies_to_all_programs_of_its_framework_without_their_own(load: Load) -> None:
    again = SCRIPT[SCRIPT.index("def numpy") :]
    own = "\n\ndef setup_numpy_own(x):\n    return {'matrix': x, 'times': 1, 'unused': 1}\n"
    workload = load(
        SCRIPT + again.replace("def numpy", "def numpy_two") + again.replace("def numpy", "def numpy_own") + own
    )
    assert workload.setup_function("numpy_two").endswith("setup_numpy()")
    assert workload.setup_function("numpy_own").endswith("setup_numpy_own()")


def test_the_setup_of_a_program_runs_again_for_other_inputs(load: Load) -> None:
    workload = load(SCRIPT)
    seen = inputs.generate(workload, workload.Parameters(), seed=1)
    unseen = inputs.generate_unseen(workload, workload.Parameters(), seen, seed=2)
    program: Program = getattr(workload, "numpy")(workload.Parameters(), unseen, Tools())  # noqa: B009 - its own method
    np.testing.assert_allclose(np.diag(program.batches[0]["matrix"]), unseen.batches[0]["diagonal"], rtol=1e-6)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            'return {"matrix": np.diag(diagonal), "times": n, "unused": None}',
            "return np.eye(3)",
            "line 8: setup_numpy() returned an array of shape (3, 3); it has to return further arguments by name",
        ),
        (
            "setup_numpy(diagonal, n)",
            "setup_numpy(diagonals, n)",
            "line 8: setup_numpy() takes diagonals, which arrays() neither returns nor takes; there are diagonal, x, n",
        ),
        (
            "def numpy(matrix, x, ",
            "def numpy(matrix, ",
            "numpy() is given the arrays matrix, x: got an unexpected",
        ),
        (
            "def numpy(matrix, x, ",
            "def numpy(matrices, x, ",
            "numpy() is given the arrays matrix, x: missing a",
        ),
    ],
)
def test_a_setup_that_does_not_fit_is_refused_with_its_line(load: Load, right: str, wrong: str, message: str) -> None:
    with pytest.raises(InvalidWorkloadError) as refused:
        build(load(SCRIPT.replace(right, wrong)))
    assert message in str(refused.value)


def test_a_misspelt_setup_is_refused(load: Load) -> None:
    with pytest.raises(catalogue.UnknownWorkloadError, match=r"setup_numpi\(\): did you mean setup_numpy\(\)\?"):
        load(SCRIPT.replace("setup_numpy", "setup_numpi"))


def test_a_setup_that_another_function_calls_is_a_helper(load: Load) -> None:
    helper = "\n\ndef setup_jax(x):\n    return x\n\n\ndef jax(x):\n    return setup_jax(x)\n"
    workload = load(SCRIPT[: SCRIPT.index("def setup")].replace('"diagonal": rng.standard_normal(n), ', "") + helper)
    assert workload.setup_function("jax") == ""
