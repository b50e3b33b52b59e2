"""A user's own workload is loaded, or refused with file, line and remedy."""

import bdb
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from accelbench import catalogue, frameworks
from accelbench.catalogue import inputs, script, workload_checks

GOOD = '''"""Doubling."""

from typing import TYPE_CHECKING

from accelbench.workload import Arrays, Cost, Program, Workload

if TYPE_CHECKING:
    import torch


class Doubling(Workload):
    """x <- 2 x."""

    def arrays(self, parameters, rng):
        return Arrays(state={"x": rng.standard_normal(8)})

    def reference(self, parameters, arrays, units):
        return {"x": 2**units * arrays.state["x"]}

    def cost(self, parameters, float_bytes):
        return Cost(flops=8.0, bytes=64.0)

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        return Program(state=tools.put(arrays.state), step=lambda s, _: ({"x": jnp.add(s["x"], s["x"])}, None))

    def pytorch(self, parameters, arrays, tools):
        return Program(state=tools.put(arrays.state), step=lambda s, _: ({"x": s["x"] + s["x"]}, None))
'''


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "doubling.py") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_script_is_found_by_its_files_name(write: Write) -> None:
    with script.use(write(GOOD, "my_doubling.py")):
        found = catalogue.find("my-doubling")
        assert found.name == "my-doubling"
        assert set(found.variants()) == {"jax/jit", "jax/op-by-op", "jax/scan", "pytorch/eager", "pytorch/compile"}
        assert catalogue.find("xor").name == "xor"
        assert "my-doubling" not in catalogue.names()
    with pytest.raises(catalogue.UnknownWorkloadError):
        catalogue.find("my-doubling")


def test_a_script_that_changed_its_name_is_loaded_again(write: Write) -> None:
    before = write(GOOD, "before.py")
    after = write(GOOD.replace("8.0", "9.0"), "after.py")
    costs = []
    for path in (before, after):
        with script.use(path):
            workload = catalogue.find(path.stem)
            costs.append(workload.cost(workload.Parameters(), 4).flops)
    assert costs == [8.0, 9.0]


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        (GOOD.replace("(self, parameters, rng):", "(self, parameters, rng)"), "doubling.py, line 14: expected ':'"),
        (GOOD.replace("    import torch", "    pass") + "\nimport torch\n", "doubling.py, line 31: imports torch at"),
        ("try:\n    from flax import nnx\nexcept ImportError:\n    pass\n" + GOOD, "doubling.py, line 2: imports flax"),
        (GOOD + "\n1 / 0\n", "doubling.py, line 31: ZeroDivisionError: division by zero"),
        ("", "found: none"),
        (GOOD + "\nclass Second(Doubling):\n    pass\n", "found: Doubling, Second"),
        (GOOD.replace("def pytorch(", "def torch("), "no pytorch(): did you mean pytorch() by torch()?"),
        (
            GOOD.partition("    def pytorch(")[0],
            'line 11: class Doubling has no pytorch(): write it, or leave pytorch out: modes = {"jax": ',
        ),
        (
            GOOD.replace("def cost(", "def costs("),
            "Doubling has no cost(); did you mean cost() by costs()?",
        ),
        (
            GOOD.replace("def reference(", "def refrence("),
            "has no reference(); did you mean reference() by refrence()?",
        ),
        (GOOD.replace("    def arrays", "    modes = {}\n\n    def arrays"), "has no variants"),
        (
            GOOD.replace("Program, Workload", "Program, Workload, WorkloadParameters").replace(
                "    def arrays", "    class Parameters(WorkloadParameters):\n        size: int\n\n    def arrays"
            ),
            "every parameter needs a default; size has none",
        ),
    ],
    ids=[
        "syntax",
        "import",
        "import in try",
        "raises",
        "no class",
        "two classes",
        "misspelled pytorch",
        "no pytorch",
        "misspelled cost",
        "misspelled reference",
        "no modes",
        "size",
    ],
)
def test_a_script_without_a_workload_is_refused_with_its_line(write: Write, text: str, expected_text: str) -> None:
    with script.use(write(text)), pytest.raises(catalogue.UnknownWorkloadError) as refused:
        catalogue.find("doubling")
    assert expected_text in str(refused.value)


@pytest.mark.parametrize(
    ("modes", "expected_text"),
    [
        ('["jit"]', "modes is a list; it has to give each program its modes, such as modes = {"),
        ('{"jaxx": ("jit",)}', 'modes: unknown framework "jaxx"; did you mean jax?'),
        ('{"pytorch": ("eagre",)}', 'modes: pytorch: unknown mode "eagre"; did you mean eager?'),
        ('{"jax": "jit"}', "modes: jax has a str; it has to be a tuple of modes, such as modes = {"),
    ],
)
def test_unknown_modes_are_refused_with_the_nearest_ones(write: Write, modes: str, expected_text: str) -> None:
    text = GOOD.replace("    def arrays", f"    modes = {modes}\n\n    def arrays")
    with script.use(write(text)), pytest.raises(catalogue.UnknownWorkloadError) as refused:
        catalogue.find("doubling")
    assert str(refused.value).startswith(f"doubling.py, line 11: class Doubling: {expected_text}")


@pytest.mark.parametrize(
    ("use", "expected_text"),
    [
        ("jaxx/mine", '@variant("jaxx/mine"): unknown framework "jaxx"; did you mean jax?'),
        ("jax", '@variant("jax") names no mode; such as @variant("jax/by-hand")'),
        (
            'pytorch/mine", in_mode="compil',
            '@variant("pytorch/mine", in_mode="compil"): unknown mode "compil"; did you mean compile?',
        ),
    ],
)
def test_an_invalid_marked_variant_is_refused_with_its_line(write: Write, use: str, expected_text: str) -> None:
    text = GOOD.replace("Workload\n", "Workload, variant\n", 1).replace(
        "    def jax", f'    @variant("{use}")\n    def jax'
    )
    with script.use(write(text)), pytest.raises(catalogue.UnknownWorkloadError) as refused:
        catalogue.find("doubling")
    assert str(refused.value) == f"doubling.py, line 23: ValueError: {expected_text}"


@pytest.mark.parametrize(
    ("right", "wrong", "expected_text"),
    [
        (
            "cost(self, parameters, float_bytes)",
            "cost(self, parameters)",
            "20: Doubling.cost() takes (self, parameters, float_bytes): too many positional arguments",
        ),
        (
            "Cost(flops=8.0, bytes=64.0)",
            "8.0",
            "20: Doubling.cost() returned a float; it has to return accelbench.workload.Cost",
        ),
        ("=8.0", '="8"', "20: Doubling.cost() returned flops as a str; it has to be a number"),
        ("=8.0", "=1e308", "20: Doubling.cost() returned flops as 1e+308; it has to be between 0 and 1e+30"),
        ("=8.0", '=float("nan")', "20: Doubling.cost() returned flops as nan; it has to be between 0 and 1e+30"),
        ("=8.0", "=8 / 0", "21: ZeroDivisionError: division by zero"),
        (
            "arrays(self, parameters, rng)",
            "arrays(self, parameters)",
            "14: Doubling.arrays() takes (self, parameters, rng): too many positional arguments",
        ),
        (
            "pytorch(self, parameters, arrays, tools)",
            "pytorch(self, arrays)",
            "28: Doubling.pytorch() takes (self, parameters, arrays, tools): too many positional arguments",
        ),
        (
            "    def cost",
            "    def measure(self, _):\n        return None\n\n    def cost",
            "20: Doubling.measure() returned None; it has to return accelbench.workload.Measure",
        ),
    ],
)
def test_an_invalid_method_is_refused_with_its_line(write: Write, right: str, wrong: str, expected_text: str) -> None:
    with (
        script.use(write(GOOD.replace(right, wrong))),
        pytest.raises(catalogue.UnknownWorkloadError) as refused,
    ):
        catalogue.find("doubling")
    assert str(refused.value) == f"doubling.py, line {expected_text}"


def test_invalid_arrays_are_reported_with_the_methods_line(write: Write) -> None:
    text = GOOD.replace('Arrays(state={"x": rng.standard_normal(8)})', '{"x": rng.standard_normal(8)}')
    with script.use(write(text)):
        workload = catalogue.find("doubling")
        with pytest.raises(workload_checks.InvalidWorkloadError) as refused:
            inputs.generate(workload, workload.Parameters(), seed=0)
    assert str(refused.value) == (
        "doubling.py, line 14: Doubling.arrays() returned a dict; it has to return accelbench.workload.Arrays"
    )


@pytest.mark.parametrize(
    ("state", "expected_text"),
    [
        ("None", "returned None as state; it has to be a dictionary of arrays"),
        ('{"x": [1.0, None]}', 'returned "x" as a list; it has to be an array of numbers'),
    ],
)
def test_a_state_without_arrays_is_reported_with_the_methods_line(write: Write, state: str, expected_text: str) -> None:
    with script.use(write(GOOD.replace('{"x": rng.standard_normal(8)}', state))):
        workload = catalogue.find("doubling")
        with pytest.raises(workload_checks.InvalidWorkloadError) as refused:
            inputs.generate(workload, workload.Parameters(), seed=0)
    assert str(refused.value) == f"doubling.py, line 14: Doubling.arrays() {expected_text}"


def test_a_script_does_not_change_how_numpy_treats_errors_elsewhere(write: Write) -> None:
    before = np.geterr()
    changes = GOOD.replace("return Arrays(", "numpy.seterr(all='raise'); return Arrays(")
    with script.use(write(f"import numpy\nnumpy.seterr(all='raise')\n{changes}")):
        workload = catalogue.find("doubling")
        inputs.generate(workload, workload.Parameters(), seed=0)
    assert np.geterr() == before


def test_a_reference_without_names_is_reported_with_its_line(write: Write) -> None:
    with script.use(write(GOOD.replace('{"x": 2**units * arrays.state["x"]}', "None"))):
        workload = catalogue.find("doubling")
        arrays = inputs.generate(workload, workload.Parameters(), seed=0)
        with pytest.raises(workload_checks.InvalidWorkloadError) as refused:
            workload_checks.call_reference(workload, workload.Parameters(), arrays, 2)
    assert str(refused.value) == (
        "doubling.py, line 17: Doubling.reference() returned None; it has to return a dictionary of arrays"
    )


def test_an_exception_in_measure_is_reported_with_its_line(write: Write) -> None:
    broken = GOOD.replace("    def cost", "    def measure(self, _):\n        return 1 / 0\n\n    def cost")
    with script.use(write(broken)), pytest.raises(catalogue.UnknownWorkloadError) as refused:
        catalogue.find("doubling")
    assert str(refused.value) == "doubling.py, line 21: ZeroDivisionError: division by zero"


def test_a_framework_imported_by_another_module_is_detected(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "packages", lambda: frozenset({"a_framework"}))
    monkeypatch.setitem(sys.modules, "a_framework", ModuleType("a_framework"))
    monkeypatch.delitem(sys.modules, "a_framework")
    text = 'import sys, types\n\nsys.modules["a_framework"] = types.ModuleType("a_framework")\n' + GOOD
    with (
        script.use(write(text)),
        pytest.raises(catalogue.UnknownWorkloadError, match="imports a_framework"),
    ):
        catalogue.find("doubling")


def test_code_that_runs_only_as_a_main_program_may_import_a_framework(write: Write) -> None:
    with script.use(write(GOOD + '\nif __name__ == "__main__":\n    import torch\n')):
        assert catalogue.find("doubling").name == "doubling"


def test_a_script_cannot_take_a_name_of_the_catalogue(write: Write) -> None:
    with script.use(write(GOOD, "xor.py")), pytest.raises(catalogue.UnknownWorkloadError, match="another name"):
        catalogue.find("xor")


def test_messages_about_a_copy_name_the_file_of_its_author(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GOOD.replace("8)})", "eight)})") + "\nHERE = __file__\n"
    edited = write(text)
    copy = tmp_path / "results" / "doubling.py"
    copy.parent.mkdir()
    copy.write_text(text)
    edited.write_text("# saved again while the copy is measured\n" + text)
    monkeypatch.setenv(script.ORIGIN_VARIABLE, str(edited))
    with script.use(copy):
        workload = catalogue.find("doubling")
        with pytest.raises(NameError) as raised:
            workload.arrays(workload.Parameters(), np.random.default_rng(0))
        assert script.format_error(raised.value) == "NameError: name 'eight' is not defined (doubling.py, line 15)"
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (last.filename, last.lineno, last.line) == (
        str(edited),
        15,
        'return Arrays(state={"x": rng.standard_normal(eight)})',
    )
    assert inspect.getsource(type(workload)).startswith("class Doubling")
    assert str(edited) == sys.modules[type(workload).__module__].HERE


def test_a_deleted_script_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone.py"
    with script.use(gone), pytest.raises(catalogue.UnknownWorkloadError, match=r"gone\.py: the script cannot be read"):
        catalogue.find("gone")


def test_an_exception_is_reported_with_the_scripts_line(write: Write) -> None:
    path = write(GOOD.replace("8)})", "eight)})"))
    with script.use(path):
        workload = catalogue.find("doubling")
        with pytest.raises(NameError) as raised:
            workload.arrays(workload.Parameters(), np.random.default_rng(0))
        assert script.format_error(raised.value) == "NameError: name 'eight' is not defined (doubling.py, line 15)"
    assert script.format_error(ValueError("elsewhere")) == "ValueError: elsewhere"
    assert script.format_error(bdb.BdbQuit()).startswith("BdbQuit: a breakpoint stops here")
    assert "nobody can answer input()" in script.format_error(EOFError("EOF when reading a line"))
