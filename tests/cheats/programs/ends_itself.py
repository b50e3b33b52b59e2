"""Ends in one way or another after some calls."""

import ctypes
import itertools
import os
import sys

from pydantic import Field

from accelbench.workload import WorkloadParameters
from cheats.honest import Relaxation


class EndsItself(Relaxation):
    """x <- tanh(x @ w), for a while."""

    class Parameters(WorkloadParameters):
        """How."""

        by: str = Field(default="raise", description="raise, sys.exit, os._exit or a segmentation fault.")

    def jax(self, parameters, arrays, tools):
        self.end = parameters.by
        return super().jax(parameters, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        self.end = parameters.by
        return super().pytorch(parameters, arrays, tools)

    def altered(self, step):
        calls = itertools.count()

        def ending(state, batch):
            if next(calls) == 50:
                self.ended()
            return step(state, batch)

        return ending

    def ended(self):
        """The end."""
        if self.end == "sys.exit":
            sys.exit(0)
        elif self.end == "os._exit":
            os._exit(0)
        elif self.end == "segfault":
            ctypes.string_at(0)
        raise RuntimeError("after fifty calls")
