"""`accelbench init NAME`: a script and a manifest to start from, which `accelbench check` passes as they are."""

import keyword
import re
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from accelbench.cli.exits import Exit

FILE_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="my_filter writes my_filter.py and my_filter.yaml.")],
    jax: Annotated[str, typer.Option("--jax", metavar="FUNCTION", help="What the JAX step is called.")] = "jax_step",
    pytorch: Annotated[
        str, typer.Option("--pytorch", metavar="FUNCTION", help="What the PyTorch step is called.")
    ] = "pytorch_step",
) -> None:
    """Write a script with one step in JAX and one in PyTorch, and a manifest that compares them.

    Both work as they are: fill in your own steps, then `accelbench check` and `accelbench run`. Nothing is
    overwritten.
    """
    name = name.removesuffix(".py").replace("-", "_")
    _refuse_bad_names(name, jax, pytorch)
    files = {Path(f"{name}.py"): script_text(name, jax, pytorch), Path(f"{name}.yaml"): manifest_text(name)}
    for path in files:
        if path.exists():
            typer.echo(f"error: {path} exists, and nothing is overwritten: choose another name", err=True)
            raise typer.Exit(Exit.USAGE)
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            typer.echo(f"wrote {path}")
    except OSError as error:
        typer.echo(f"error: {error.filename}: {error.strerror}", err=True)
        raise typer.Exit(Exit.USAGE) from error
    typer.echo(f"Fill in your steps in {name}.py, then:\n  accelbench check {name}.yaml\n  accelbench run {name}.yaml")


def _refuse_bad_names(name: str, jax: str, pytorch: str) -> None:
    from accelbench import catalogue
    from accelbench.api.case import name_of_file

    if not FILE_NAME.fullmatch(name) or keyword.iskeyword(name):
        what = "a name has lower-case letters, digits and underscores, as in my_filter"
        raise typer.BadParameter(f"{name}: {what}", param_hint="NAME")
    if name_of_file(name) in catalogue.names():
        raise typer.BadParameter(
            f"accelbench has a workload {name_of_file(name)} already: choose another name", param_hint="NAME"
        )
    for option, function in (("--jax", jax), ("--pytorch", pytorch)):
        if not function.isidentifier() or keyword.iskeyword(function):
            raise typer.BadParameter(f"{function} is no name for a function", param_hint=option)


def script_text(name: str, jax: str, pytorch: str) -> str:
    """The script: x <- x / (1 + x^2) in NumPy, JAX and PyTorch."""
    title = name.replace("_", " ").capitalize()
    return Template(SCRIPT).substitute(title=title, kind=class_name(name), jax=jax, pytorch=pytorch)


def class_name(name: str) -> str:
    """`my_filter` is `MyFilter`."""
    return "".join(part.capitalize() for part in name.split("_"))


def manifest_text(name: str) -> str:
    """The manifest: PyTorch in eager mode against JAX under jit."""
    return Template(MANIFEST).substitute(file=name, name=name.replace("_", "-").strip("-"))


SCRIPT = '''"""$title: the same step in JAX and in PyTorch."""

from pydantic import Field

from accelbench.workload import Arrays, Cost, Program, Workload, WorkloadParameters


class $kind(Workload):
    """x <- x / (1 + x^2), element by element."""

    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set in the manifest, under workload.parameters."""

        size: int = Field(default=512, ge=1, le=20_000, description="Rows and columns of x.")

    def arrays(self, parameters, rng):
        """What goes in: both frameworks get the same numbers."""
        return Arrays(state={"x": rng.standard_normal((parameters.size, parameters.size))})

    def reference(self, parameters, arrays, units):
        """What is right after so many steps, in NumPy: both steps are compared with it."""
        x = arrays.state["x"]
        for _ in range(units):
            x = x / (1 + x * x)
        return {"x": x}

    def cost(self, parameters, float_bytes):
        """One step: floating-point operations, and bytes that are read and written."""
        numbers = parameters.size**2
        return Cost(flops=3.0 * numbers, bytes=2.0 * numbers * float_bytes)

    def jax(self, parameters, arrays, tools):
        """The step in JAX; jit is placed around it, according to the variant."""

        def $jax(x, _batch):
            return x / (1 + x * x), None

        return Program(state=tools.put(arrays.state["x"]), step=$jax, export=lambda x, _: {"x": x})

    def pytorch(self, parameters, arrays, tools):
        """The step in PyTorch."""

        def $pytorch(x, _batch):
            return x / (1 + x * x), None

        return Program(state=tools.put(arrays.state["x"]), step=$pytorch, export=lambda x, _: {"x": x})
'''

MANIFEST = """\
# accelbench check $file.yaml    seconds: are both steps right?
# accelbench run $file.yaml      minutes: which is faster?
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata:
  name: $name
spec:
  workload:
    script:
      configMapKeyRef: {name: $name, key: $file.py} # here: the file beside this one; in a cluster: a ConfigMap's key
    parameters: {size: 512}
  variants:
    - use: pytorch/eager
    - use: jax/jit
  baseline: pytorch/eager
  measurement:
    rounds: {min: 3, max: 10}
    targetRelativeError: "2%"
    timeLimitSeconds: 300
"""
