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
from accelbench.local.manifests import read_target
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


@pytest.mark.parametrize("parameters", ["x, origin, rows", "x, origin, rows=2", "x, origin, *, rows", "rows, *all"])
def test_a_parameter_of_arrays_that_a_function_names_is_passed_as_it_is(load: Load, parameters: str) -> None:
    returned = "((x - origin) ** 2).sum(-1).sqrt()"
    workload = load(GOOD.replace("def pytorch(x, origin)", f"def pytorch({parameters})").replace(returned, "rows"))
    arrays = drawn(workload)
    program = workload.pytorch(workload.Parameters.model_validate({"rows": 5}), arrays, Tools())
    assert program.step({}, program.batches[0])[1] == 5  # the other function and the default keep out


def test_a_parameter_that_is_returned_as_an_array_is_an_array(load: Load) -> None:
    text = GOOD.replace('{"x":', '{"rows": rows, "x":').replace("(x, origin)", "(x, origin, rows)")
    workload = load(text.replace("((x - origin) ** 2).sum(-1).sqrt()", "rows"))
    program = workload.pytorch(workload.Parameters(), drawn(workload), Tools())
    assert isinstance(program.step({}, program.batches[0])[1], np.ndarray)


def test_a_reference_takes_parameters_too(load: Load) -> None:
    workload = load(GOOD + "\n\ndef reference(x, origin, rows):\n    return x * rows\n")
    arrays = drawn(workload)
    right = workload.reference(workload.Parameters(), arrays, 2)
    np.testing.assert_array_equal(right["y"], 8 * arrays.batches[0]["x"])


@pytest.mark.parametrize("parameters", ["*all", "x, *all", "one, other, /", "**all", "x, **all"])
def test_a_function_without_names_gets_the_arrays_in_their_order(load: Load, parameters: str) -> None:
    taken = "all" if "*all" in parameters else "one, other"
    workload = load(
        GOOD.replace("def pytorch(x, origin)", f"def pytorch({parameters})").replace(
            "((x - origin) ** 2).sum(-1).sqrt()", taken
        )
    )
    program = workload.pytorch(workload.Parameters(), drawn(workload), Tools())
    x, origin = program.batches[0]["x"], program.batches[0]["origin"]
    expected = {
        "*all": (x, origin),
        "x, *all": (origin,),
        "one, other, /": (x, origin),
        "**all": {"x": x, "origin": origin},
        "x, **all": {"origin": origin},
    }
    np.testing.assert_equal(program.step({}, {"origin": origin, "x": x})[1], expected[parameters])


SCAN = "\n\ndef jax_scan(x, origin):\n    return x - origin\n"


def test_programs_of_one_framework_are_variants_under_their_own_names(load: Load) -> None:
    without_pytorch = GOOD[: GOOD.index("def pytorch")]
    workload = load(without_pytorch + SCAN)
    assert workload.default_uses() == ("jax/jit", "jax_scan/jit")
    assert set(workload.variants()) == {"jax/jit", "jax/op-by-op", "jax_scan/jit", "jax_scan/op-by-op"}
    kind = workload.variants()["jax_scan/op-by-op"]
    assert (kind.framework, kind.mode) == ("jax", "op-by-op")
    program = getattr(workload, kind.method)(workload.Parameters(), drawn(workload), Tools())
    np.testing.assert_array_equal(program.step({}, {"x": 3, "origin": 1})[1], 2)


@pytest.mark.parametrize("name", ["jax2", "jax_FFT", "jax_", "pytorch_v2"])
def test_a_program_may_begin_with_its_framework_and_need_not_be_called_like_it(load: Load, name: str) -> None:
    text = GOOD.replace("def jax", f"def {name}")
    framework = "pytorch" if name.startswith("pytorch") else "jax"
    assert {f"{name}/{mode}" for mode in frameworks.find(framework).modes if mode != "scan"} < set(
        load(text).variants()
    )


def test_a_function_that_another_one_uses_is_a_helper(load: Load) -> None:
    helper = "\n\ndef jax_norm(x):\n    return x if x is None else jax_norm(None)\n"
    used = GOOD.replace("return jnp.sqrt", "return jax_norm(x) or jnp.sqrt") + helper
    assert {kind.method for kind in load(used).variants().values()} == {"jax", "pytorch"}
    named_again = GOOD.replace("def jax", "def jax_distance") + "\n\njax = jax_distance\n"
    assert {kind.method for kind in load(named_again).variants().values()} == {"jax", "pytorch"}
    tried = GOOD + SCAN + '\n\nif __name__ == "__main__":\n    print(jax_scan(1, 2))\n'
    assert {kind.method for kind in load(tried).variants().values()} == {"jax", "jax_scan", "pytorch"}


def test_a_program_with_other_arrays_is_refused_with_advice_for_a_helper(load: Load) -> None:
    with pytest.raises(catalogue.UnknownWorkloadError) as refused:
        load(GOOD + "\n\ndef jax_loss(w):\n    return w\n")
    assert "jax_loss() takes (w), and distances.py, line 8: jax() takes (x, origin)" in str(refused.value)
    assert str(refused.value).endswith("rename it to _jax_loss")


def test_arguments_of_arrays_after_the_generator_are_the_parameters(load: Load) -> None:
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
def test_results_of_a_function_have_names(load: Load, returned: str, names: list[str]) -> None:
    workload = load(GOOD.replace("((x - origin) ** 2).sum(-1).sqrt()", returned))
    arrays = drawn(workload)
    program = workload.pytorch(workload.Parameters(), arrays, Tools())
    assert list(program.export(*program.step({}, arrays.batches[0]))) == names


@pytest.mark.parametrize(
    ("right", "wrong", "expected_text"),
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
        ("def jax", "import torch\ndef jax", "line 8: imports torch at the top"),
    ],
)
def test_functions_that_cannot_be_compared_are_refused_with_their_line(
    load: Load, right: str, wrong: str, expected_text: str
) -> None:
    with pytest.raises(catalogue.UnknownWorkloadError) as refused:
        load(GOOD.replace(right, wrong))
    assert f"distances.py, {expected_text}" in str(refused.value)


def test_a_helper_with_a_similar_name_is_a_helper(load: Load) -> None:
    assert set(load(GOOD + "\n\ndef difference(one, other):\n    return one - other\n").variants())


@pytest.mark.parametrize(
    ("returned", "expected_text"),
    [
        ('{"x": rng.standard_normal(8)}', "jax() is given the arrays x: missing a required argument: 'origin'"),
        ("rng.standard_normal(8)", "arrays() returned an array of shape (8,); it has to return a dictionary of arrays"),
        ('{"x": None, "origin": 1}', 'line 5: arrays() returned "x" as None; it has to be an array of numbers'),
        (
            '{"x": [[1], [2, 3]], "origin": 1}',
            'line 5: arrays() returned "x" as a list that NumPy cannot convert to an array',
        ),
        ("{0: rng.standard_normal(8)}", "arrays() names an array 0; a name is a string of at most 1000 characters"),
        ('{"x" * 2000: rng.standard_normal(8)}', "names an array 'xxx"),
        ('{"\\udc80": rng.standard_normal(8)}', "names an array '\\udc80'; a name is a string of at most"),
        (
            '{"x": numpy.ma.masked_array([1.0], [True]), "origin": 1}',
            'arrays() returned "x" as a masked array; return filled(NUMBER), with a number for each masked element',
        ),
        (
            '{"x": numpy.array(["2020-01-01"], "M8[D]"), "origin": 1}',
            'arrays() returned "x" as an array of dates (datetime64[D]); it has to be an array of numbers',
        ),
    ],
)
def test_arrays_that_no_function_takes_are_reported_with_their_line(
    load: Load, returned: str, expected_text: str
) -> None:
    text = GOOD.replace('{"x": rng.standard_normal((rows, 2)), "origin": rng.standard_normal(2)}', returned)
    text = f"import numpy\n{text}"
    with pytest.raises(InvalidWorkloadError) as refused:
        drawn(load(text))
    assert expected_text in str(refused.value)


def test_a_reference_that_returns_no_numbers_is_refused_with_the_remedy(load: Load) -> None:
    masked = REFERENCE.replace("return ", "return numpy.ma.masked_invalid")
    workload = load(f"import numpy\n{GOOD}{masked}")
    with pytest.raises(InvalidWorkloadError, match="returned a masked array; return filled"):
        workload.reference(workload.Parameters(), drawn(workload), 1)


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
    ("returned", "expected_text"),
    [
        ("None", "returned None; it has to return an array"),
        ("{}", "returned a dict; it has to return an array"),
        ("x, {'a': 'b'}", 'returned "y1.a" as a str; it has to return arrays, alone or in tuples'),
        ('{"a": {"b": x}, "a.b": x}', 'returned two arrays with the path "a.b"'),
    ],
)
def test_a_function_that_returns_something_else_is_named(load: Load, returned: str, expected_text: str) -> None:
    workload = load(GOOD.replace("((x - origin) ** 2).sum(-1).sqrt()", returned))
    arrays = drawn(workload)
    program = workload.pytorch(workload.Parameters(), arrays, Tools())
    with pytest.raises(InvalidWorkloadError, match=re.escape(f"line 14: pytorch() {expected_text}")):
        program.export(*program.step({}, arrays.batches[0]))


def test_a_reference_may_be_any_callable(load: Load) -> None:
    partial = "import functools\n\nreference = functools.partial(lambda x, origin, k: x, k=3)\n"
    assert load(f"{GOOD}\n\n{partial}").has_reference()


def test_annotations_as_text_are_evaluated(load: Load) -> None:
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


@pytest.mark.parametrize(
    ("file", "name"),
    [("01-x.py", "01-x"), ("Bench.py", "bench"), ("my_filter.v2.py", "my-filter-v2"), ("FFT_.py", "fft")],
)
def test_a_script_may_have_the_name_that_its_author_gave_it(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / file).write_text(GOOD)
    [run] = read_target(str(tmp_path / file))
    assert (run.metadata.name, run.spec.workload.label) == (name, name)
