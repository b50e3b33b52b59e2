"""A user's own workload as functions: `y = f(x)` for each framework, and the arrays that they are given."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from accelbench import catalogue, frameworks
from accelbench.catalogue import inputs, script
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Arrays, Workload

GOOD = '''"""Distances from a point."""


def arrays(rng, rows: int = 8):
    return {"x": rng.standard_normal((rows, 2)), "origin": rng.standard_normal(2)}


def jax(x, origin):
    import jax.numpy as jnp

    return jnp.sqrt(((x - origin) ** 2).sum(-1))


def pytorch(x, origin):
    return ((x - origin) ** 2).sum(-1).sqrt()
'''
REFERENCE = "\n\ndef reference(x, origin):\n    return (((x - origin) ** 2).sum(-1)) ** 0.5\n"
Load = Callable[[str], Workload]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Workload:
        path = tmp_path / str(len(list(tmp_path.iterdir()))) / "distances.py"
        path.parent.mkdir()
        path.write_text(text)
        with script.use(path):
            return catalogue.find("distances")

    return load


class Tools:
    """Leaves arrays where they are."""

    def put(self, arrays: Any) -> Any:
        return arrays


def drawn(workload: Workload) -> Arrays:
    return inputs.generate(workload, workload.Parameters(), seed=1)


def test_functions_called_like_frameworks_are_variants_in_their_modes(load: Load) -> None:
    workload = load(GOOD)
    assert set(workload.variants()) == {"jax/jit", "jax/op-by-op", "pytorch/eager", "pytorch/compile"}
    assert set(workload.default_uses()) == {"jax/jit", "pytorch/eager"}
    assert workload.name == "distances"
    assert not workload.has_reference()
    assert load(GOOD + REFERENCE).has_reference()


def test_what_arrays_takes_beside_the_generator_are_the_parameters(load: Load) -> None:
    workload = load(GOOD)
    assert workload.Parameters().model_dump() == {"rows": 8}
    arrays = inputs.generate(workload, workload.Parameters.model_validate({"rows": 3}), seed=1)
    assert arrays.batches[0]["x"].shape == (3, 2)
    with pytest.raises(ValidationError, match="column"):
        workload.Parameters.model_validate({"column": 3})
    with pytest.raises(ValidationError, match="integer"):
        workload.Parameters.model_validate({"rows": "many"})


def test_a_step_gives_the_function_the_arrays_by_name_and_feeds_nothing_back(load: Load) -> None:
    workload = load(GOOD + REFERENCE)
    arrays = drawn(workload)
    program = workload.jax(workload.Parameters(), arrays, Tools())
    state, out = program.step(program.state, program.batches[0])
    assert state == program.state == {}
    right = workload.reference(workload.Parameters(), arrays, 5)
    np.testing.assert_allclose(program.export(state, out)["y"], right["y"], rtol=1e-5)


@pytest.mark.parametrize(
    ("returned", "names"),
    [("x, origin", ["y0", "y1"]), ('{"far": x, "near": origin}', ["far", "near"]), ("x", ["y"])],
)
def test_what_a_function_returns_has_names(load: Load, returned: str, names: list[str]) -> None:
    workload = load(GOOD.replace("((x - origin) ** 2).sum(-1).sqrt()", returned))
    arrays = drawn(workload)
    program = workload.pytorch(workload.Parameters(), arrays, Tools())
    assert list(program.export(*program.step({}, arrays.batches[0]))) == names


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            "def arrays(rng, rows: int = 8)",
            "def data(rng)",
            "line 8: jax(): no arrays() makes its inputs; write",
        ),
        ("def arrays(rng, rows: int = 8)", "def arays(rng)", "line 4: arays(): did you mean arrays()?"),
        ("def pytorch", "def torch", "line 14: torch(): did you mean pytorch()?"),
        ("(rng, rows: int = 8)", "(rows: int = 8)", "line 4: arrays() takes (rows: int = 8) first; its first argument"),
        ("(rng, rows: int = 8)", "(rng, rows)", "line 4: arrays(): every parameter needs a default; rows has none"),
        (
            "(rng, rows: int = 8)",
            "()",
            "line 4: arrays() takes no argument; its first argument has to be the random generator",
        ),
        (
            "def pytorch(x, origin)",
            "def pytorch(x, point)",
            "line 14: pytorch() takes (x, point), and distances.py",
        ),
        ("def pytorch(x, origin)", "def pytorch(*all)", "line 14: pytorch() takes *all; arrays are given by name"),
        ("def jax", "import torch\ndef jax", "line 8: imports torch at the top"),
        ("def jax(x, origin)", "def jax(x, origin, rows=2)", "line 8: jax() takes rows, which arrays() takes too"),
    ],
)
def test_functions_that_cannot_be_compared_are_refused_with_their_line(
    load: Load, right: str, wrong: str, said: str
) -> None:
    with pytest.raises(catalogue.UnknownWorkloadError) as refused:
        load(GOOD.replace(right, wrong))
    assert f"distances.py, {said}" in str(refused.value)


def test_a_helper_that_sounds_alike_is_a_helper(load: Load) -> None:
    assert set(load(GOOD + "\n\ndef difference(one, other):\n    return one - other\n").variants())


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ('{"x": rng.standard_normal(8)}', "jax() is given the arrays x: missing a required argument: 'origin'"),
        ("rng.standard_normal(8)", "arrays() returned a ndarray; it has to return a dictionary of arrays"),
        ('{"x": None, "origin": 1}', 'line 4: arrays() returned "x" as None; it has to be an array of numbers'),
        ('{"x": [[1], [2, 3]], "origin": 1}', 'line 4: arrays() returned "x", which is not an array: '),
    ],
)
def test_arrays_that_no_function_takes_are_said_with_their_line(load: Load, returned: str, said: str) -> None:
    text = GOOD.replace('{"x": rng.standard_normal((rows, 2)), "origin": rng.standard_normal(2)}', returned)
    with pytest.raises(InvalidWorkloadError) as refused:
        drawn(load(text))
    assert said in str(refused.value)


def test_arrays_that_import_a_framework_are_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = load(GOOD.replace("    return {", "    import wave\n\n    return {", 1))
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    monkeypatch.setattr(frameworks, "packages", lambda: frozenset({"wave"}))
    with pytest.raises(InvalidWorkloadError, match=r"line 4: arrays\(\) imports wave. The launches of"):
        drawn(workload)


def test_lists_of_numbers_are_arrays(load: Load) -> None:
    text = GOOD.replace('rng.standard_normal((rows, 2)), "origin": rng.standard_normal(2)', '[[1, 2]], "origin": 1')
    assert {name: array.shape for name, array in drawn(load(text)).batches[0].items()} == {"x": (1, 2), "origin": ()}


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("None", "returned None; it has to return an array"),
        ('{"a": {"b": x}}', 'returned "a" as a dict; it has to return an array'),
        ("x, 1.5", 'returned "y1" as a float; it has to return an array'),
        ("{0: x}", "names a result 0; a name is a string"),
    ],
)
def test_a_function_that_returns_something_else_is_named(load: Load, returned: str, said: str) -> None:
    workload = load(GOOD.replace("((x - origin) ** 2).sum(-1).sqrt()", returned))
    arrays = drawn(workload)
    program = workload.pytorch(workload.Parameters(), arrays, Tools())
    with pytest.raises(InvalidWorkloadError, match=re.escape(f"line 14: pytorch() {said}")):
        program.export(*program.step({}, arrays.batches[0]))


def test_a_reference_may_be_any_callable(load: Load) -> None:
    partial = "import functools\n\nreference = functools.partial(lambda x, origin, k: x, k=3)\n"
    assert load(f"{GOOD}\n\n{partial}").has_reference()


def test_annotations_that_are_text_mean_what_they_say(load: Load) -> None:
    later = "from __future__ import annotations\n\nfrom typing import Annotated\n\nfrom pydantic import Field\n"
    text = GOOD.replace("rows: int = 8", "rows: Annotated[int, Field(ge=4)] = 8").replace('"""\n', '"""\n\n' + later, 1)
    with pytest.raises(ValidationError, match="greater than or equal to 4"):
        load(text).Parameters.model_validate({"rows": 3})
    unknown = load(text.replace("(rng,", "(rng: Nowhere,")).Parameters()
    assert unknown.model_dump() == {"rows": 8}


def test_a_function_that_changes_its_arrays_is_refused(load: Load) -> None:
    workload = load(GOOD.replace("def pytorch(x, origin):\n", "def pytorch(x, origin):\n    x += 1\n"))
    arrays = drawn(workload)
    program = workload.pytorch(workload.Parameters(), arrays, Tools())
    with pytest.raises(ValueError, match="read-only"):
        program.step({}, arrays.batches[0])
