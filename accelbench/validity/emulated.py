"""The devices are real: several host devices of one processor, or several processes of one host, check mechanics."""

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed
from accelbench.validity.evidence import Launch, Unreadable, clip, fact


def _look(_case: Case, launch: Launch) -> Finding:
    why = fact(launch, "emulated", str)
    if isinstance(why, Unreadable):
        return failed(why)
    return failed(clip(f"{why}: mechanics only")) if why else passed("real devices")


CHECK = LaunchCheck(
    name="emulated",
    threshold="no emulated device",
    reason="devices that share one processor and its memory are slower together, not faster: no time says anything",
    look=_look,
)
