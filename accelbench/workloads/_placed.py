"""Compile a program's step for a variant of its own, or leave it as it is written."""

from dataclasses import replace

from accelbench.workload import Program


def as_written(program: Program) -> Program:
    """Return the program with its step called as it is written, which compiles nothing or only parts of itself."""
    return replace(program, placed=True)


def jitted(program: Program) -> Program:
    """Return the program with its step under jax.jit."""
    import jax

    return replace(program, step=jax.jit(program.step), placed=True)


def compiled_as_one_graph(program: Program) -> Program:
    """Return the program with its step under torch.compile, which raises an error if it cannot make one graph of it."""
    import torch

    return replace(program, step=torch.compile(program.step, fullgraph=True), placed=True)
