"""A mistake in a script is reported with the line of the author's file and the remedy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accelbench.catalogue import script
from accelbench_runner.protocol import Failed, PhaseStarted
from launch.launching import LaunchOutput, case, launch

GOOD = '''\
from accelbench.workload import Arrays, Cost, Program, Workload


class MyFilter(Workload):
    """Halves."""

    def arrays(self, parameters, rng):
        return Arrays(state={"x": rng.standard_normal(64)})

    def reference(self, parameters, arrays, units):
        return {"x": arrays.state["x"] / 2**units}

    def cost(self, parameters, float_bytes):
        return Cost(flops=64.0, bytes=128.0 * float_bytes)

    def jax(self, parameters, arrays, tools):
        import jax

        def step(x, _batch):
            return x / 2, None

        return Program(state=tools.put(arrays.state["x"]), step=step, export=lambda x, _: {"x": x})

    def pytorch(self, parameters, arrays, tools):
        def step(x, _batch):
            return x / 2, None

        return Program(state=tools.put(arrays.state["x"]), step=step, export=lambda x, _: {"x": x})
'''
STEP = "return x / 2, None"
EXPORT = ', export=lambda x, _: {"x": x}'
LITTLE_MEMORY = """
        import resource
        import jax.numpy as jnp

        def attend(q):
            return jax.nn.softmax(jnp.einsum("hid,hjd->hij", q, q)) @ q

        q = jnp.ones((8, 2048, 64))
        compiled = jax.jit(attend).lower(q).compile()

        def step(x, _batch):
            held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (held + 8 * 1024**2, -1))
            return x, compiled(q).block_until_ready()
"""

Tell = Callable[[str, str], tuple[LaunchOutput, Failed]]


@pytest.fixture
def tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Launches a variant of a script, which lies elsewhere than its author edits it, and fails."""

    def tell(text: str, use: str) -> tuple[LaunchOutput, Failed]:
        copy, edited = tmp_path / "results" / "my_filter.py", tmp_path / "my_filter.py"
        copy.parent.mkdir()
        copy.write_text(text)
        edited.write_text(text)
        monkeypatch.setenv(script.SCRIPT_VARIABLE, str(copy))
        monkeypatch.setenv(script.ORIGIN_VARIABLE, str(edited))
        launched = launch(tmp_path, case("my-filter", use))
        assert launched.failure is not None
        return launched, launched.failure

    return tell


def phase(launched: LaunchOutput) -> str:
    return [message.phase for message in launched.messages if isinstance(message, PhaseStarted)][-1]


@pytest.mark.parametrize(
    ("use", "reached"), [("pytorch/eager", "first-step"), ("jax/op-by-op", "first-step"), ("jax/jit", "compile")]
)
def test_an_exception_of_a_step_is_reported_with_the_authors_line_and_the_phase(
    tell: Tell, tmp_path: Path, use: str, reached: str
) -> None:
    launched, failure = tell(GOOD.replace(STEP, 'raise ValueError("mine")'), use)
    line = 26 if use == "pytorch/eager" else 20
    assert failure.message == "ValueError: mine"
    assert failure.trace == f'my_filter.py, line {line} in step: raise ValueError("mine")'
    assert phase(launched) == reached


@pytest.mark.parametrize("use", ["pytorch/eager", "jax/jit"])
def test_a_state_without_names_and_export_is_reported_before_anything_is_compiled(tell: Tell, use: str) -> None:
    launched, failure = tell(GOOD.replace(EXPORT, ""), use)
    line, method = (24, "pytorch") if use == "pytorch/eager" else (16, "jax")
    assert failure.message == (
        f"my_filter.py, line {line}: MyFilter.{method}(): its state is an array of shape (64,), not a dictionary "
        "of named arrays, so name what is compared with the reference: "
        'Program(..., export=lambda state, out: {"x": state})'
    )
    assert failure.trace == ""
    assert phase(launched) == "setup"


@pytest.mark.parametrize(
    ("export", "expected_text"),
    [
        ("lambda x, _: x", "returned an array of shape (64,); export has to return a dictionary of named arrays"),
        ('lambda x, _: {"x": {"y": x}}', 'exports "x" as a dict; it has to be an array'),
        ('lambda x, _: {"x": 1.0}', 'exports "x" as a float; it has to be an array'),
    ],
)
def test_an_export_of_anything_but_named_arrays_is_reported_with_its_line(
    tell: Tell, export: str, expected_text: str
) -> None:
    _, failure = tell(GOOD.replace(EXPORT, f", export={export}"), "jax/jit")
    assert failure.message.startswith(f"my_filter.py, line 22: MyFilter.jax.<locals>.<lambda>() {expected_text}")


def test_a_library_that_is_not_installed_is_named_with_the_extra_that_has_it(tell: Tell) -> None:
    declared = 'libraries = {"pytorch": ("nobodys_solvers.core",)}\n    extra = "scientific"'
    launched, failure = tell(GOOD.replace('"""Halves."""', f'"""Halves."""\n\n    {declared}'), "pytorch/eager")
    assert failure.message == "nobodys_solvers is not installed: pip install 'accelbench[scientific]'"
    assert phase(launched) == "import"


def test_another_framework_that_is_not_installed_is_named_with_its_own_extra(tell: Tell) -> None:
    without_torch = 'import sys\n\nsys.modules["torch"] = None\n' + GOOD
    declared = 'libraries = {"jax": ("torch",)}'
    _, failure = tell(without_torch.replace('"""Halves."""', f'"""Halves."""\n\n    {declared}'), "jax/jit")
    assert failure.message == "torch is not installed: pip install 'accelbench[torch]'"


def test_a_cpu_kernel_of_xla_that_gets_no_memory_has_run_out_of_memory(tell: Tell) -> None:
    text = GOOD.replace(f"\n        def step(x, _batch):\n            {STEP}\n", LITTLE_MEMORY, 1)
    _, failure = tell(text, "jax/op-by-op")
    assert failure.reason == "OutOfMemory", failure.message
