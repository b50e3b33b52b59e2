"""Nothing was compiled while blocks were timed; in an episode compiling belongs to what is measured."""

from pydantic.types import NonNegativeInt

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed
from accelbench.validity.evidence import Launch, Unreadable, fact, protocol_of


def _look(_case: Case, launch: Launch) -> Finding:
    count = fact(launch, "recompilations", NonNegativeInt)
    if isinstance(count, Unreadable):
        return failed(count)
    if count == 0:
        return passed("none")
    causes = fact(launch, "recompilationCauses", list[str])
    why = "" if isinstance(causes, Unreadable) or not causes else f": {causes[0]}"
    if protocol_of(launch) == "episode":
        return passed(f"{count} in the episode, and counted in its time{why}")
    return failed(f"{count} in the steady phase{why}")


CHECK = LaunchCheck(
    name="recompiled",
    threshold="0 in the steady phase; an episode counts them",
    reason="one compilation costs as much as thousands of steps",
    look=_look,
)
