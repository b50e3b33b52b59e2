"""Programs as users of both frameworks write them, and how each has to end; `programs/` has them, one file each.

Every kind stands for public reports: correct programs that were refused or crashed, and wrong ones that passed.
"""

from dataclasses import dataclass
from pathlib import Path

from accelbench.api.reasons import FailureReason
from cheats.trials import Asked

PROGRAMS = Path(__file__).parent / "programs"
EAGER, JIT, NUMPY = "pytorch/eager", "jax/jit", "numpy/eager"


@dataclass(frozen=True)
class End:
    """How a variant has to end; by default, no check fails, and what it computes is compared."""

    fails: tuple[str, ...] = ()
    """These of `formula` and `parity` fail, and no other check does."""
    explained: bool = False
    """The numbers show what the mistake is, and the reading has it."""
    untested: bool = False
    """Nobody knows what is right, so its parity is untested."""
    raises: FailureReason | None = None
    """The launch fails, for this reason."""


PASSES = End()
WRONG = End(fails=("formula", "parity"))
EXPLAINED = End(fails=("formula", "parity"), explained=True)
OVERFLOWS = End(fails=("parity",), explained=True)
"""In float64, JAX has integers of 64 bits, and so the formula is right."""
REFUSED = End(raises=FailureReason.RAISED)


@dataclass(frozen=True)
class Row:
    """A program, and how each of its variants has to end, the baseline first."""

    kind: str
    program: str
    ends: tuple[tuple[str, End], ...] = ((EAGER, PASSES), (JIT, PASSES))

    def __str__(self) -> str:
        return self.program

    @property
    def asked(self) -> Asked:
        """What is run."""
        return Asked(self.program, tuple(use for use, _ in self.ends), folder=PROGRAMS)


ROWS: tuple[Row, ...] = (
    Row("a value that only its derivative needs", "slope_of_log_cosh"),
    Row("large outputs beside small ones", "sinh_for_cosh", ((EAGER, PASSES), (JIT, WRONG))),
    Row("linear systems", "ridge_regressions"),
    Row("order of equal numbers", "order_of_distances"),
    Row("one rounding after the other", "rotations"),
    Row("outputs rounded to integers", "grey_levels"),
    Row("a gradient by backward()", "backward_of_a_logistic_loss"),
    Row("a gradient where autograd is switched on", "autograd_that_is_switched_on"),
    Row("tensors with lazy flags", "adjoint_of_a_spectrum"),
    Row("infinity that belongs there", "longest_paths"),
    Row("sparse outputs", "sparse_neighbours", ((EAGER, REFUSED), (JIT, REFUSED))),
    Row("random outputs", "noise_of_its_own", ((EAGER, End(fails=("parity",))), (JIT, End(untested=True)))),
    Row("a module with weights of its own", "filter_with_weights"),
    Row("a parameter that is no array", "chebyshev"),
    Row("a running sum", "running_energy", ((NUMPY, PASSES), (JIT, PASSES), (EAGER, PASSES))),
    Row("vectors of either sign", "triangles_of_either_sign", ((EAGER, PASSES), (JIT, EXPLAINED))),
    Row("integers of 32 bits", "cubes_beyond_32_bits", ((EAGER, PASSES), (JIT, OVERFLOWS))),
    Row("sums by index", "forces_on_particles"),
    Row("prints", "prints_everywhere"),
    Row("one call of a library", "largest_of_each_row"),
    Row("truths", "points_in_a_square"),
)
