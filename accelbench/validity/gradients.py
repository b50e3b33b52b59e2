"""Autograd records what a step does only where the step computes gradients, as anyone would run it.

PyTorch records operations on parameters unless it is told not to, which an inference pays for: the same GRU took 2.0
times as long as in JAX with it, and 1.6 times without. JAX differentiates functions and records nothing.
"""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    gradients = launch.facts.gradients
    if isinstance(gradients, Unreadable):
        return untested(gradients)
    arithmetic = launch.facts.arithmetic
    if not (isinstance(arithmetic, Unreadable) or gradients.wanted) and arithmetic.recorded:
        return failed("autograd was set off and recorded inside the step, which switched it on")
    if gradients.found == "functional":
        return passed("by jax.grad alone")
    wanted = "on" if gradients.wanted else "off"
    if gradients.found != wanted:
        return failed(f"autograd was set {wanted} and found {gradients.found}: the step changed it")
    return passed(f"autograd {wanted}")


CHECK = LaunchCheck(
    name="gradients",
    threshold="autograd on where the workload differentiates, off elsewhere",
    reason="autograd recorded what nobody differentiated, in one framework only: 1.3 times as slow",
    evaluate=_evaluate,
    observed=True,
)
