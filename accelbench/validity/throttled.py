"""The control group was not held back by its quota while blocks were timed."""

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested
from accelbench.validity.evidence import Launch, Throttling, Unreadable, fact


def _look(_case: Case, launch: Launch) -> Finding:
    throttling = fact(launch, "throttling", Throttling)
    if isinstance(throttling, Unreadable):
        return untested(throttling)
    reading = f"held back in {throttling.periods} periods"
    return passed(reading) if throttling.periods == 0 else failed(reading)


CHECK = LaunchCheck(
    name="throttled",
    threshold="0 periods in the steady phase",
    reason="a held-back group stands still for the rest of a period, 100 ms at most: ten blocks long",
    look=_look,
)
