"""Check that the generator let requests begin on time: it runs in the launch's own process, which may wake up late.

A request is late if the server is free and the request has arrived, and it still does not begin. Its response contains
that delay, which is the machine's and not the variant's.
"""

from accelbench import figures
from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested

MAXIMUM_LATENESS = 0.01
"""Maximum lateness of 99 % of the requests, as a share of the median response."""


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if more than 1 % of the requests began later than `MAXIMUM_LATENESS` of the median response allows.

    Untested if no request was timed, or if the lateness is unknown.
    """
    if case.measurement.arrivals is None:
        return passed("no requests arrive: each call begins when the one before it has ended")
    response_seconds = launch.seconds()
    if response_seconds is None:
        return untested("no request was timed")
    lateness = launch.facts.lateness
    if isinstance(lateness, Unreadable):
        return untested(lateness)
    reading = (
        f"99 % of the requests began within {figures.seconds(lateness.p99_seconds)} of their time, "
        f"median response {figures.seconds(response_seconds)}"
    )
    return passed(reading) if lateness.p99_seconds <= MAXIMUM_LATENESS * response_seconds else failed(reading)


CHECK = LaunchCheck(
    name="generator-late",
    threshold=f"99 % of the requests begin within {MAXIMUM_LATENESS:.0%} of the median response after their time",
    reason=(
        "then the lateness of 99 % of the requests moves the median by less than 1 %, half of the usual margin. The "
        "other 1 % can move its rank by 1 %, and are in the 99th percentile, which decides nothing"
    ),
    evaluate=_evaluate,
    measured_only=True,
    arrivals_only=True,
    disturbance=True,
    advice=lambda _: "measure again when the machine is idle, or leave the generator a processor of its own",
)
