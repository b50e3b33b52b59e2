"""Check that autograd records a step only if the step computes gradients, as a user would run it.

PyTorch records operations on parameters by default, which slows inference: the same GRU took 2.0 times as long as in
JAX with recording, and 1.6 times without. JAX differentiates functions and records nothing.
"""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if autograd was not in the wanted mode."""
    gradients = launch.facts.gradients
    if isinstance(gradients, Unreadable):
        return untested(gradients)
    arithmetic = launch.facts.arithmetic
    recorded = not isinstance(arithmetic, Unreadable) and arithmetic.recorded
    if recorded and not gradients.wanted:
        return failed("autograd was set off, but recorded inside the step: the step switched it on")
    if gradients.actual == "functional":  # as in JAX, which differentiates functions
        return passed("by jax.grad alone")
    wanted = "on" if gradients.wanted else "off"
    if gradients.actual != wanted:
        return failed(f"autograd was set {wanted}, but was {gradients.actual} afterwards: the step changed it")
    return passed(f"autograd {wanted}")


CHECK = LaunchCheck(
    name="gradients",
    threshold="autograd on where the workload differentiates, off elsewhere",
    reason="autograd recorded operations although no gradient is needed; this slowed one framework 1.3 times",
    evaluate=_evaluate,
    observed=True,
)
