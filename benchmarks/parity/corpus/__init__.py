"""Hold the programs that the parity rule is measured with."""

from benchmarks.parity.corpus import choices, dynamics, elementwise, linear_algebra, networks, reductions

PROGRAMS = (
    *elementwise.PROGRAMS,
    *reductions.PROGRAMS,
    *linear_algebra.PROGRAMS,
    *networks.PROGRAMS,
    *dynamics.PROGRAMS,
    *choices.PROGRAMS,
)
