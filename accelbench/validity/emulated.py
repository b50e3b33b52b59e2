"""The devices are real: several host devices of one processor, or several processes of one host, check mechanics."""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable, clip
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    why = launch.facts.emulated
    if isinstance(why, Unreadable):
        return failed(why)
    return failed(clip(f"{why}: mechanics only")) if why else passed("real devices")


CHECK = LaunchCheck(
    name="emulated",
    threshold="no emulated device",
    reason="devices that share one processor and its memory are slower together, not faster: their times mean nothing",
    evaluate=_evaluate,
)
