"""Check that devices are real: emulated devices, or several processes on one host, test only the mechanics."""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable, clip
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the launch's devices are emulated, for example on CPUs, or if that is unknown."""
    emulation = launch.facts.emulated
    if isinstance(emulation, Unreadable):
        return failed(emulation)
    return failed(clip(f"{emulation}: mechanics only")) if emulation else passed("real devices")


CHECK = LaunchCheck(
    name="emulated",
    threshold="no emulated device",
    reason="emulated devices share one processor and its memory: more of them are slower, so their times mean nothing",
    evaluate=_evaluate,
    remedy="measure on real devices; emulated ones show only that the program runs",
)
