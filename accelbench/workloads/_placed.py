"""Compile a program's step, or leave it as written, for variants whose step accelbench must not compile."""

from dataclasses import replace

from accelbench.workload import Program


def as_written(program: Program) -> Program:
    """Return the program with its step unchanged; the step may compile parts of itself."""
    return replace(program, placed=True)


def jitted(program: Program) -> Program:
    """Return the program with its step under jax.jit."""
    import jax

    return replace(program, step=jax.jit(program.step), placed=True)


def compiled_as_one_graph(program: Program) -> Program:
    """Return the program with its step under torch.compile, which raises an error if the step needs several graphs."""
    import torch

    return replace(program, step=torch.compile(program.step, fullgraph=True), placed=True)
