"""Prints a megabyte in each step."""

from cheats.honest import Relaxation


class PrintsAMegabyte(Relaxation):
    """x <- tanh(x @ w), loudly."""

    def altered(self, step):
        def loud(state, batch):
            print("x" * 1_000_000)
            return step(state, batch)

        return loud
