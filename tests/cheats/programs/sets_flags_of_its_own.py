"""Sets flags for the compiler before the framework is imported."""

import os

from cheats.honest import Relaxation


class SetsFlagsOfItsOwn(Relaxation):
    """x <- tanh(x @ w), with fast mathematics."""

    os.environ["XLA_FLAGS"] = "--xla_cpu_enable_fast_math=true"
