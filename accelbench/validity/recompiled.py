"""Check that nothing was compiled while blocks were timed; an episode's time includes compiling."""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if anything was compiled while blocks were timed, or if that is unknown.

    With a known number, an episode passes, because its time is meant to include compiling.
    """
    count = launch.facts.recompilations
    if isinstance(count, Unreadable):
        return failed(count)
    if count == 0:
        return passed("none")
    causes = launch.facts.recompilation_causes
    cause = "" if isinstance(causes, Unreadable) or not causes else f": {causes[0]}"
    if launch.protocol == "episode":
        return passed(f"{count} in the episode, whose time includes them{cause}")
    return failed(f"{count} in the steady phase{cause}")


CHECK = LaunchCheck(
    name="recompiled",
    threshold="0 in the steady phase; any number in an episode, whose time includes them",
    reason="one compilation costs as much as thousands of steps",
    evaluate=_evaluate,
    measured_only=True,
    remedy="give every call inputs of the same shapes and types; change nothing that a compiled function closes over",
)
