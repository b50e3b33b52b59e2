"""Compile a program's step, or leave it as written, for variants whose step accelbench must not compile."""

from dataclasses import replace

from accelbench.workload import Program, Tools


def as_written(program: Program) -> Program:
    """Return the program with its step unchanged; the step may compile parts of itself."""
    return replace(program, placed=True)


def jitted(program: Program) -> Program:
    """Return the program with its step under jax.jit."""
    import jax

    return replace(program, step=jax.jit(program.step), placed=True)


def compiled_as_one_graph(program: Program, tools: Tools) -> Program:
    """Return the program with its step under torch.compile, which raises an error if the step needs several graphs.

    It is for variants of PyTorch in the mode `compile`, whose options it takes.
    """
    return replace(program, step=tools.in_mode(program.step, one_program=True), placed=True)
