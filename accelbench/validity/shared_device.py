"""Nobody else used the processors, or the GPU, while blocks were timed.

Rounds pair launches, so that what slows the machine hits both sides alike; neighbours do not: an eager framework whose
threads wait for each other was seen eight times slower beside them, a compiled one twice.
"""

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested
from accelbench.validity.evidence import Gpu, Launch, Neighbours, Unreadable, fact

ALLOWED_SHARE = 0.10


def _look(case: Case, launch: Launch) -> Finding:
    neighbours = fact(launch, "neighbours", Neighbours)
    if isinstance(neighbours, Unreadable):
        return untested(neighbours)
    share = max(0.0, neighbours.busy_seconds) / neighbours.offered_seconds
    reading = f"other processes used {100 * share:.0f} % of the CPU"
    if share > ALLOWED_SHARE:
        return failed(reading)
    if case.accelerator.platform != "cuda":
        return passed(reading)
    gpu = fact(launch, "gpu", Gpu)
    if isinstance(gpu, Unreadable):
        return untested(gpu)
    if gpu.other_processes is None:
        return untested(f"{reading}; NVML does not show who uses the GPU")
    reading += f"; {gpu.other_processes} other processes on the GPU"
    return failed(reading) if gpu.other_processes else passed(reading)


CHECK = LaunchCheck(
    name="shared-device",
    threshold=f"at most {ALLOWED_SHARE:.0%} of the processors' time, no other process on the GPU",
    reason="a machine at rest was seen at 0.4 %, one that runs a whole Kubernetes node at 3 %",
    look=_look,
    disturbance=True,
)
