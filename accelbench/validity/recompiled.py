"""Nothing was compiled inside the steady phase."""

from pydantic.types import NonNegativeInt

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed
from accelbench.validity.evidence import Launch, Unreadable, fact


def _look(_case: Case, launch: Launch) -> Finding:
    count = fact(launch, "recompilations", NonNegativeInt)
    if isinstance(count, Unreadable):
        return failed(count)
    if count == 0:
        return passed("none")
    causes = fact(launch, "recompilationCauses", list[str])
    why = "" if isinstance(causes, Unreadable) or not causes else f": {causes[0]}"
    return failed(f"{count} in the steady phase{why}")


CHECK = LaunchCheck(
    name="recompiled",
    threshold="0 in the steady phase",
    reason="one compilation costs as much as thousands of steps",
    look=_look,
)
