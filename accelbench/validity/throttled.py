"""The control group was not held back by its quota while blocks were timed."""

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested
from accelbench.validity.evidence import Launch, Throttling, Unreadable, fact

ALLOWED_SHARE = 0.01


def _look(_case: Case, launch: Launch) -> Finding:
    throttling = fact(launch, "throttling", Throttling)
    if isinstance(throttling, Unreadable):
        return untested(throttling)
    timed = sum(block.seconds for block in launch.blocks)
    reading = f"held back for {throttling.seconds:.3g} s in {throttling.periods} periods, {timed:.3g} s timed"
    return passed(reading) if throttling.seconds <= ALLOWED_SHARE * timed else failed(reading)


CHECK = LaunchCheck(
    name="throttled",
    threshold=f"at most {ALLOWED_SHARE:.0%} of the timed seconds",
    reason="half of the usual margin; a launch's median over blocks sees less of it still",
    look=_look,
    disturbance=True,
)
