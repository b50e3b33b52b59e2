"""The form in which a script's outputs are compared: what canonical() is given, and what is refused."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue import script, workload_checks
from accelbench.notebook import compare, script_text
from accelbench.workload import Arrays, Workload

FUNCTIONS = '''"""Sort."""
import numpy as np

def arrays(rng, rows: int = 8):
    return {"x": rng.standard_normal(rows)}

def numpy(x):
    return x

'''
CLASS = '''"""Sort."""
from accelbench.workload import Arrays, Measure, Program, Workload

class Sort(Workload):
    name = "sorted"
    modes = {"numpy": ("eager",)}

    def arrays(self, parameters, rng):
        return Arrays(state={})

    def numpy(self, parameters, arrays, tools):
        return Program({}, lambda state, batch: (state, None))

    def reference(self, parameters, arrays, units):
        return {}

    def canonical(self, parameters, arrays, outputs):
        return {name: array * 2 for name, array in outputs.items()}
'''
Y = np.array([3.0, 1.0, 2.0])
Load = Callable[[str], Workload]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str) -> Workload:
        path = tmp_path / str(len(list(tmp_path.iterdir()))) / "sorted.py"
        path.parent.mkdir()
        path.write_text(text)
        with script.use(path):
            return catalogue.find("sorted")

    return load


def formed(workload: Workload, *batches: dict[str, Any], **outputs: Any) -> dict[str, Any]:
    """Return the outputs in the workload's form, as lists."""
    arrays = Arrays(state={}, batches=batches or ({"x": np.ones(8)},))
    found = workload_checks.call_canonical(workload, workload.Parameters(), arrays, outputs)
    return {name: array.tolist() for name, array in found.items()}


@pytest.mark.parametrize(
    ("canonical", "outputs", "expected"),
    [
        ("def canonical(y): return np.sort(y)", {"y": Y}, {"y": [1, 2, 3]}),
        ("def canonical(anything): return np.sort(anything)", {"y": Y}, {"y": [1, 2, 3]}),
        ("canonical = np.sort", {"y": Y}, {"y": [1, 2, 3]}),
        ("def canonical(vector, x): return vector + x[0]", {"y": Y}, {"y": [4, 2, 3]}),
        ("def canonical(y, rows): return y * rows", {"y": Y}, {"y": [24, 8, 16]}),
        ("def canonical(y0, y1): return y0, y1 * 2", {"y0": Y, "y1": Y}, {"y0": [3, 1, 2], "y1": [6, 2, 4]}),
        ("def canonical(x, w): return {'s': x + w}", {"x": Y, "w": Y}, {"s": [6, 2, 4]}),
        ("def canonical(**outputs): return {'s': outputs['w.a']}", {"w.a": Y, "w.b": Y}, {"s": [3, 1, 2]}),
        ("def canonical(loss, **others): return loss, others", {"loss": Y, "w.b": Y}, {"y0": Y, "y1.w.b": Y}),
    ],
)
def test_a_form_takes_outputs_by_their_names_and_inputs_and_parameters_that_it_names(
    load: Load, canonical: str, outputs: dict[str, Any], expected: dict[str, Sequence[float]]
) -> None:
    workload = load(FUNCTIONS + canonical)
    assert workload.has_canonical()
    assert formed(workload, **outputs) == {name: list(values) for name, values in expected.items()}


def test_each_of_several_batches_has_its_own_form_and_inputs(load: Load) -> None:
    workload = load(FUNCTIONS + "def canonical(y, x): return np.sort(y) + x[0]")
    batches = [{"x": np.full(2, 10.0)}, {"x": np.full(2, 20.0)}]
    found = formed(workload, *batches, **{"0.y": Y, "1.y": Y[:2]})
    assert found == {"0.y": [11, 12, 13], "1.y": [21, 23]}


def test_without_a_form_outputs_are_compared_as_they_are(load: Load) -> None:
    workload = load(FUNCTIONS)
    assert not workload.has_canonical()
    assert formed(workload, y=Y) == {"y": Y.tolist()}


def test_a_class_has_a_form_too(load: Load) -> None:
    assert load(CLASS).has_canonical()
    assert formed(load(CLASS), v=Y) == {"v": [6, 2, 4]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FUNCTIONS + "canonical = 3", "canonical is a int; it has to be a function, such as def canonical(y)"),
        (FUNCTIONS + "reference = 3", "reference is a int; it has to be a function"),
        (FUNCTIONS + "class canonical: pass", "canonical is a class; it has to be a function"),
        (FUNCTIONS + "def canonical(): return 1", "sorted.py, line 10: canonical() takes nothing; it has to take"),
        (FUNCTIONS + "def canonicl(y): return y", "sorted.py, line 10: canonicl(): did you mean canonical()?"),
        (
            FUNCTIONS + "def canonical(y): return y\nmeasure = {'random': 'moments'}",
            "sorted.py, line 10: canonical() gives outputs the form in which their numbers are compared, but measure",
        ),
        (CLASS.replace("def canonical", "def canonicl"), "has no canonical(); did you mean canonical() by canonicl()?"),
        (CLASS.replace("arrays, outputs)", "outputs)"), "Sort.canonical() takes (self, parameters, arrays, outputs)"),
        (
            CLASS + "    def measure(self, parameters):\n        return Measure(random='shapes')\n",
            "Sort.canonical() gives outputs the form in which their numbers are compared, but measure declares them",
        ),
    ],
)
def test_a_form_that_cannot_be_used_is_refused_when_the_script_is_loaded(load: Load, text: str, message: str) -> None:
    with pytest.raises(catalogue.UnknownWorkloadError) as refused:
        load(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("returned", "message"), [("None", "returned nothing; it has to return"), ("3", "returned a int; it has to return")]
)
def test_a_class_that_returns_no_form_is_refused_with_the_remedy(load: Load, returned: str, message: str) -> None:
    workload = load(CLASS.replace("{name: array * 2 for name, array in outputs.items()}", returned))
    with pytest.raises(workload_checks.InvalidWorkloadError, match=rf"Sort\.canonical\(\) {message}"):
        formed(workload, v=Y)


def test_a_notebook_sends_a_form_as_it_sends_functions(load: Load) -> None:
    text = script_text({"numpy": lambda x: x}, {"x": Y}, canonical=lambda y, x: np.sort(y) + x[0])
    workload = load(text)
    assert formed(workload, {"x": Y}, y=Y) == {"y": [4, 5, 6]}
    with pytest.raises(TypeError, match=r"canonical=\.\.\. takes a function, not a int"):
        compare(numpy=lambda x: x, arrays={"x": Y}, canonical=3)  # type: ignore[arg-type]
