"""Test `accelbench.compare`: its arguments, the script that it writes, and its refusals."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import accelbench
from accelbench import catalogue
from accelbench.catalogue import inputs, script
from accelbench.notebook import MAXIMUM_BYTES, CannotBeSentError, script_text

SCALE = 2.0
X = np.arange(6.0).reshape(2, 3)


def helper(values: Any) -> Any:
    return values * SCALE


def doubled(x: Any) -> Any:
    return helper(x)


def sent(path: Path, **given: Any) -> Any:
    """Return the workload of the script for these functions."""
    functions = {name: given[name] for name in given if name not in ("arrays", "reference")}
    path.write_text(script_text(functions, given["arrays"], given.get("reference")))
    with script.use(path):
        return catalogue.find("sent")


def test_a_function_is_sent_with_its_helpers_and_the_values_that_it_uses(tmp_path: Path) -> None:
    found = sent(tmp_path / "sent.py", numpy=lambda x: doubled(x) + SCALE, arrays={"x": X})
    arrays = inputs.generate(found, found.Parameters(), 0)
    np.testing.assert_array_equal(arrays.batches[0]["x"], X)
    program = getattr(found, "numpy")(found.Parameters(), arrays, Tools())  # noqa: B009 - a method of its own
    np.testing.assert_array_equal(program.step({}, arrays.batches[0])[1], 2 * X + 2)


class Tools:
    def put(self, arrays: Any) -> Any:
        return arrays


@pytest.mark.parametrize(
    "function",
    [np.negative, lambda *values: -values[0], lambda x, /: -x, lambda **named: -named["x"], partial(np.multiply, -1)],
    ids=["ufunc", "*", "/", "**", "partial"],
)
def test_a_function_without_names_gets_the_arrays_in_their_order(tmp_path: Path, function: Any) -> None:
    found = sent(tmp_path / "sent.py", numpy=function, arrays={"x": X})
    arrays = inputs.generate(found, found.Parameters(), 0)
    program = getattr(found, "numpy")(found.Parameters(), arrays, Tools())  # noqa: B009 - a method of its own
    np.testing.assert_array_equal(program.step({}, arrays.batches[0])[1], -X)


def test_a_function_with_a_derivative_of_its_own_is_sent(tmp_path: Path) -> None:
    @jax.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    clipped.defvjp(lambda x: (clipped(x), None), lambda _, gradient: (gradient.clip(-1, 1),))
    found = sent(tmp_path / "sent.py", jax=jax.grad(lambda x: (5 * clipped(x)).sum()), arrays={"x": X})
    arrays = inputs.generate(found, found.Parameters(), 0)
    program = found.jax(found.Parameters(), arrays, Tools())
    np.testing.assert_array_equal(program.step({}, arrays.batches[0])[1], np.ones_like(X))


@pytest.mark.parametrize(
    "function",
    [jax.grad(lambda x, w: (x * w[:2]).sum(), argnums=1), jax.vmap(lambda w, x: x * w[0], in_axes=(None, 0))],
    ids=["grad", "vmap"],
)
def test_a_transformed_function_gets_the_arrays_by_position(tmp_path: Path, function: Any) -> None:
    found = sent(tmp_path / "sent.py", jax=function, arrays={"w": np.ones((5, 3)), "x": X})
    arrays = inputs.generate(found, found.Parameters(), 0)
    program = found.jax(found.Parameters(), arrays, Tools())
    np.testing.assert_array_equal(program.step({}, program.batches[0])[1].sum(axis=0), X.sum(axis=0))


def test_a_setup_is_sent_with_its_function(tmp_path: Path) -> None:
    found = sent(
        tmp_path / "sent.py",
        setup_numpy=lambda x: {"total": x.sum(axis=0)},
        numpy=lambda total: total * SCALE,
        arrays={"x": X},
    )
    arrays = inputs.generate(found, found.Parameters(), 0)
    program = getattr(found, "numpy")(found.Parameters(), arrays, Tools())  # noqa: B009 - a method of its own
    np.testing.assert_array_equal(program.step({}, program.batches[0])[1], 2 * X.sum(axis=0))


def test_defaults_of_keywords_are_kept_and_parameters_of_drawing_replace_them(tmp_path: Path) -> None:
    found = sent(
        tmp_path / "sent.py",
        numpy=lambda x, *, rows=1, scale=10.0: x * rows * scale,
        arrays=lambda rng, rows=3: {"x": X * rng.integers(1, 2, size=(rows - 1, 1))},
    )
    arrays = inputs.generate(found, found.Parameters(), 0)
    program = getattr(found, "numpy")(found.Parameters(), arrays, Tools())  # noqa: B009 - a method of its own
    np.testing.assert_array_equal(program.step({}, arrays.batches[0])[1], 30 * X)


def test_functions_of_one_framework_are_sent_under_their_own_names(tmp_path: Path) -> None:
    found = sent(tmp_path / "sent.py", numpy=doubled, numpy_scaled=lambda x: x * SCALE, arrays={"x": X})
    assert found.default_uses() == ("numpy/eager", "numpy_scaled/eager")


def test_the_sent_source_is_stored_next_to_the_result(tmp_path: Path) -> None:
    sent(tmp_path / "sent.py", numpy=doubled, arrays={"x": X})
    text = (tmp_path / "sent.py").read_text()
    assert "# def doubled(x: Any) -> Any:\n#     return helper(x)\n" in text


def test_drawing_arrays_and_a_reference_are_sent_like_functions(tmp_path: Path) -> None:
    found = sent(
        tmp_path / "sent.py",
        numpy=doubled,
        reference=lambda x: 2 * x,
        arrays=lambda rng, rows=4: {"x": rng.standard_normal((rows, 2))},
    )
    assert found.has_reference()
    assert list(found.Parameters.model_fields) == ["rows"]


def test_the_defaults_of_drawing_are_the_given_ones(tmp_path: Path) -> None:
    found = sent(tmp_path / "sent.py", numpy=doubled, arrays=lambda rng, rows=4: {"x": rng.standard_normal((rows, 2))})
    assert inputs.generate(found, found.Parameters(), 0).batches[0]["x"].shape == (4, 2)


@pytest.mark.slow
def test_a_framework_is_imported_by_the_launch_that_needs_it_and_by_no_other(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
import jax.numpy as jnp, torch
from accelbench.notebook import script_text
text = script_text({{"jax": lambda x: jnp.tanh(x), "pytorch": lambda x: torch.tanh(x)}}, {{"x": torch.ones(3)}}, None)
open({str(tmp_path / "sent.py")!r}, "w").write(text)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    loading = f"""
import sys
sys.path[:0] = {sys.path!r}
from pathlib import Path
from accelbench import catalogue
from accelbench.catalogue import inputs, script
with script.use(Path({str(tmp_path / "sent.py")!r})):
    found = catalogue.find("sent")
drawn = inputs.generate(found, found.Parameters(), 0)
assert drawn.batches[0]["x"].dtype == "float64", drawn
class Tools:
    def put(self, arrays):
        return arrays
found.jax(found.Parameters(), drawn, Tools())
print("jax" in sys.modules, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", loading], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "False"]


def with_a_lock() -> Callable[[Any], Any]:
    lock = threading.Lock()
    return lambda x: (lock, x)


@pytest.mark.parametrize(
    ("given", "expected_text"),
    [
        ({"numpy": with_a_lock()}, r"numpy cannot be sent to a process of its own: .*lock.*\n.*accelbench init"),
        (
            {"arrays": {"x": np.ones(MAXIMUM_BYTES // 8)}},
            r"arrays takes 32 MiB, and 32 are .*\n.*def arrays\(rng\)",
        ),
        ({"arrays": {"x": ["a", None]}}, r'arrays\["x"\] is a list; it has to be an array of numbers'),
    ],
    ids=["lock", "large", "no numbers"],
)
def test_a_function_that_cannot_be_sent_is_an_error_with_the_remedy(given: dict[str, Any], expected_text: str) -> None:
    parts = {"numpy": doubled, "arrays": {"x": X}} | given
    with pytest.raises(CannotBeSentError) as refused:
        script_text({"numpy": parts["numpy"]}, parts["arrays"], None)
    assert re.search(expected_text, str(refused.value), re.DOTALL)


@pytest.mark.parametrize(
    ("given", "expected_text"),
    [
        ({"torch": doubled}, 'torch=...: unknown framework "torch"; did you mean pytorch?'),
        ({"numpy": doubled, "rounds": 3}, 'rounds=...: write settings={"measurement.rounds.max": ...}'),
        ({"numpy": doubled, "setup_jax": doubled}, "setup_jax=...: there is no function jax"),
        ({"numpy": doubled, "measure": {"unit": 1}}, 'this call: measure: "unit": 1: input should be a valid string'),
        ({}, "nothing to compare: give a function for each framework"),
        ({"numpy": doubled, "settings": {"measurement.rounds.mix": 3}}, "measurement.rounds.min"),
        ({"numpy": doubled, "settings": {"measurement.rounds.max": 0}}, "should be greater than or equal to 3"),
        ({"numpy": doubled, "variants": ["numpy/eagre"]}, 'unknown mode "eagre"; did you mean eager?'),
        ({"numpy": doubled, "pytorch": lambda y: y}, "<lambda>() is given the arrays x: missing"),
        ({"numpy": doubled, "name": "matmul_chain"}, "accelbench already has a workload matmul-chain"),
        ({"numpy": doubled, "name": "my/thing"}, 'name="my/thing": a name begins with a letter'),
        ({"numpy": doubled, "settings": {"rounds": 3}}, "rounds is no parameter; did you mean measurement.rounds?"),
        ({"numpy": doubled, "variants": "numpy/eagre"}, 'unknown mode "eagre"; did you mean eager?'),
        ({"numpy": doubled, "processors": 0}, "processors=0: at least 1"),
        ({"numpy": 3}, "numpy=... takes a function, not a int"),
        ({"numpy": doubled, "reference": 0}, "reference=... takes a function, not a int"),
        ({"numpy": doubled, "arrays": None}, "arrays=... takes arrays by name"),
        ({"numpy": doubled, "arrays": {"y": X}}, "doubled() is given the arrays y: missing a required"),
        (
            {"numpy": doubled, "arrays": {"x": [[1, 2], [3]]}},
            'arrays["x"] is a list that NumPy cannot convert to an array',
        ),
    ],
)
def test_a_comparison_that_cannot_be_run_is_an_error_before_anything_is_written(
    given: dict[str, Any], expected_text: str, tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(expected_text)):
        accelbench.compare(**{"arrays": {"x": X}, "out": tmp_path / "results", **given})
    assert not (tmp_path / "results").exists()


def test_existing_results_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(FileExistsError, match="is not empty, and nothing is overwritten: give out= another name"):
        accelbench.compare(numpy=doubled, arrays={"x": X}, out=tmp_path)


PROGRAM = """
import sys
sys.path[:0] = {path!r}
import accelbench, jax, jax.numpy as jnp, numpy, torch
scale = 2.0
jax.devices(), torch.ones(3)
found = accelbench.compare(
    jax=lambda x: jnp.tanh(x) * scale,
    pytorch=lambda x: torch.tanh(x) * scale,
    arrays={{"x": numpy.random.default_rng(0).standard_normal((256, 256))}},
    settings={{"measurement.rounds.min": 3, "measurement.rounds.max": 3}},
    accept_noise=True,
    out={out!r},
)
parity = {{check.variant: check.outcome for check in found.result.certificate.checks if check.name == "parity"}}
print(parity["jax/jit"], found.result.case.script.file, found._repr_html_()[:15])
print(repr(found))
try:
    accelbench.compare(jax=jax.jit(lambda x: jnp.tanh(x)), arrays={{"x": numpy.ones(3)}})
except accelbench.notebook.CannotBeSentError as error:
    print(error)
"""


@pytest.mark.slow
def test_functions_of_a_process_that_has_both_frameworks_are_measured_in_fresh_ones(tmp_path: Path) -> None:
    program = PROGRAM.format(path=sys.path, out=str(tmp_path / "results"))
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, *findings, compiled = done.stdout.splitlines()
    assert first == "passed compared.py <iframe srcdoc="
    assert "jax/jit" in "".join(findings)
    assert compiled.startswith("jax is already compiled by jax.jit; pass the function itself")
    assert "fork" not in done.stderr
    assert {path.name for path in (tmp_path / "results").iterdir()} >= {"compared.py", "report.html", "all.result.json"}


@pytest.mark.slow
def test_functions_are_checked_without_being_timed_and_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    right = accelbench.check(numpy=lambda x: 2 * x, numpy_sum=lambda x: x + x, arrays={"x": X})
    assert not right.failed, str(right)
    assert {variant.seconds for variant in right.result.variants} == {None}
    wrong = accelbench.check(numpy=lambda x: 2 * x, numpy_sum=lambda x: x + x + 1, arrays={"x": X})
    assert wrong.failed
    assert repr(wrong) == "Failed: numpy_sum/eager."
    assert "every number is larger than the reference's by 1" in " ".join(str(wrong).split())
    assert list(tmp_path.iterdir()) == []


def test_a_check_refuses_what_a_comparison_refuses() -> None:
    with pytest.raises(ValueError, match="unknown framework"):
        accelbench.check(numqy=doubled, arrays={"x": X})


class CannotBeRead:
    """Raise an error when it is unpickled."""

    def __call__(self, x: Any) -> Any:
        return x

    def __reduce__(self) -> Any:
        return divmod, (1, 0)


def test_values_that_cannot_be_read_back_are_refused_before_anything_starts() -> None:
    given = CannotBeRead()
    with pytest.raises(CannotBeSentError, match="division or modulo by zero"):
        script_text({"numpy": lambda x: given(x) + 1}, {"x": X}, None)
