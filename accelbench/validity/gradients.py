"""Check that autograd records a step only if the step computes gradients, as a user would run it.

PyTorch records operations on parameters by default, which slows inference: the same GRU took 2.0 times as long as in
JAX with recording, and 1.6 times without. JAX differentiates functions and records nothing.

A step computes gradients if backward passes differentiate what autograd recorded. Some recorded operations may be left
out: a metric beside the loss, or a graph of derivatives that is not differentiated again.
"""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested

LEAST_SHARE = 0.1
"""Minimum share of the recorded operations that backward passes have to differentiate.

A first gradient with create_graph=True that is not differentiated again leaves out two thirds, a second gradient half.
"""


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if autograd recorded a step that computes no gradients, or if the step changed autograd's mode.

    Untested if the mode is unknown.
    """
    gradients = launch.facts.gradients
    if isinstance(gradients, Unreadable):
        return untested(gradients)
    if gradients.actual == "functional":  # as in JAX, which differentiates functions
        return passed("by jax.grad alone")
    arithmetic = launch.facts.arithmetic
    # Autograd recorded operations although the workload declares no gradients: did backward passes use most of them?
    if not gradients.wanted and not isinstance(arithmetic, Unreadable) and arithmetic.operations_recorded:
        recorded, differentiated = arithmetic.operations_recorded, arithmetic.operations_differentiated
        if differentiated < LEAST_SHARE * recorded:
            return failed(
                f"autograd recorded {recorded} operations, and backward passes differentiated {differentiated}: the "
                "step switches autograd on for more than its gradients"
            )
        return passed("the step computes gradients")
    # accelbench sets autograd on for a workload that declares gradients, or if the step raised an error without it.
    initial_mode = "on" if gradients.wanted or gradients.needed else "off"
    if gradients.actual != initial_mode:
        return failed(f"autograd was set {initial_mode}, but was {gradients.actual} afterwards: the step changed it")
    return passed(f"autograd {initial_mode}")


CHECK = LaunchCheck(
    name="gradients",
    threshold="autograd records a step only if the step computes gradients",
    reason="autograd recorded operations although no gradient is needed; this slowed one framework 1.3 times",
    evaluate=_evaluate,
    observed=True,
    remedy=(
        "leave autograd as accelbench sets it: no set_grad_enabled, and enable_grad() only around what is then "
        "differentiated"
    ),
)
