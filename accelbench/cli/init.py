"""Implement `accelbench init NAME`: write a script and a manifest to start from, which pass `accelbench check`."""

import keyword
import re
import sys
from pathlib import Path
from string import Template

import click

from accelbench.local.exits import Exit
from accelbench.terminal.program import Command

RESERVED_FUNCTIONS = {"arrays", "reference", "canonical", "jax", "pytorch", "numpy"}
"""Names by which accelbench finds the functions of a script."""
FILE_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
"""A name that Python can import; with dashes, it is also a valid name of a run."""


@click.command(cls=Command)
@click.argument("name", metavar="NAME", help="my_filter writes my_filter.py and my_filter.yaml.")
@click.option("--jax", metavar="FUNCTION", default="jax", help="The JAX function's name.")
@click.option("--pytorch", metavar="FUNCTION", default="pytorch", help="The PyTorch function's name.")
def init(name: str, jax: str, pytorch: str) -> None:
    """Write a script with one function in JAX and one in PyTorch, and a manifest that compares them.

    Both work as they are. Replace them with your own, then use `accelbench check` and `accelbench run`. Nothing is
    overwritten.
    """
    name = name.removesuffix(".py").replace("-", "_")
    _refuse_bad_names(name, jax, pytorch)
    files = {Path(f"{name}.py"): script_text(name, jax, pytorch), Path(f"{name}.yaml"): manifest_text(name)}
    for path in files:
        if path.exists():
            click.echo(f"error: {path} already exists and is not overwritten: choose another name", err=True)
            sys.exit(Exit.USAGE)
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            click.echo(f"wrote {path}")
    except OSError as error:
        click.echo(f"error: {error.filename}: {error.strerror}", err=True)
        sys.exit(Exit.USAGE)
    click.echo(
        f"Write your own functions in {name}.py, then:\n  accelbench check {name}.yaml\n  accelbench run {name}.yaml\n"
        f"Sizes, variants and rounds are in {name}.yaml."
    )


def _refuse_bad_names(name: str, jax: str, pytorch: str) -> None:
    """Raise BadParameter if the name of the script or of a function is malformed or already taken."""
    from accelbench import catalogue, frameworks
    from accelbench.api.case import workload_name_from_file

    if not FILE_NAME.fullmatch(name) or keyword.iskeyword(name):
        rule = "a name consists of lower-case letters, digits and underscores, such as my_filter"
        raise click.BadParameter(f"{name}: {rule}", param_hint="NAME")
    if name in frameworks.packages() | {"numpy", "accelbench"} | sys.stdlib_module_names:
        message = f"{name}.py would hide the Python package {name}: choose another name"
        raise click.BadParameter(message, param_hint="NAME")
    if workload_name_from_file(name) in catalogue.names():
        raise click.BadParameter(
            f"accelbench already has a workload {workload_name_from_file(name)}: choose another name", param_hint="NAME"
        )
    for framework, function, other_function in (("jax", jax, pytorch), ("pytorch", pytorch, jax)):
        option = f"--{framework}"
        if not function.isidentifier() or keyword.iskeyword(function):
            raise click.BadParameter(f"{function} is not a valid function name", param_hint=option)
        # The name of its framework is the only reserved name that a function may have.
        if function == other_function or function in RESERVED_FUNCTIONS - {framework}:
            raise click.BadParameter(f"another function of the script is already called {function}", param_hint=option)


def script_text(name: str, jax: str, pytorch: str) -> str:
    """Return a script that computes y = x / (1 + x^2) in NumPy, JAX and PyTorch."""
    title = name.replace("_", " ").capitalize()
    script = Template(SCRIPT).substitute(title=title, jax=jax, pytorch=pytorch)
    aliases = ""  # accelbench looks for functions called `jax` and `pytorch`
    if jax != "jax":
        aliases += f"jax = {jax}\n"
    if pytorch != "pytorch":
        aliases += f"pytorch = {pytorch}\n"
    return f"{script}\n\n{aliases}" if aliases else script


def manifest_text(name: str) -> str:
    """Return a manifest that compares the script's PyTorch function in eager mode with its JAX function under jit."""
    from accelbench.local.manifests import DEFAULT_VARIANTS, time_limit

    run_name = name.replace("_", "-").strip("-")  # Kubernetes allows neither _ nor - at an end of a name
    return Template(MANIFEST).substitute(file=name, name=run_name, seconds=time_limit(DEFAULT_VARIANTS))


SCRIPT = '''"""$title: the same function in JAX and in PyTorch."""


def arrays(rng, size: int = 512):
    """Draw the inputs; both functions get them by these names. Set size in the manifest, or with --set size=1024."""
    return {"x": rng.standard_normal((size, size))}


def $jax(x):
    """Compute it in JAX; the variant decides about jit."""
    import jax.numpy as jnp

    return x / (1 + jnp.square(x))


def $pytorch(x):
    """Compute it in PyTorch."""
    import torch

    return x / (1 + torch.square(x))


def reference(x):
    """Compute the right values in NumPy and float64; without this function the baseline in float64 defines them."""
    import numpy as np

    return x / (1 + np.square(x))
'''

MANIFEST = """\
# accelbench check $file.yaml    seconds: are both right?
# accelbench run $file.yaml      minutes: which is faster?
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata:
  name: $name
spec:
  workload:
    script: {file: $file.py} # next to this manifest
    parameters: {size: 512}
  variants:
    - use: pytorch/eager
    - use: jax/jit
  baseline: pytorch/eager
  measurement:
    rounds: {min: 3, max: 10}
    targetRelativeError: "2%"
    timeLimitSeconds: $seconds
"""
