"""Check that the work ran on the requested device: the output array's own device, read after the run."""

from collections.abc import Iterator

from accelbench.launch.fact import Unreadable
from accelbench.validity.check import CaseCheck, VariantFinding, failed, passed
from accelbench.validity.evidence import Evidence


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Pass each variant that ran on the requested platform, and fail each that did not or whose device is unreadable.

    Also fail all variants (None) if the models of the devices differ.
    """
    requested = evidence.case.accelerator.platform
    device_names: set[str] = set()
    for variant in evidence.variants:
        for launch in evidence.launches_of(variant):
            device = launch.facts.device
            if isinstance(device, Unreadable):
                yield variant, failed(f"round {launch.round}: {device.why}")
                break
            device_names.add(device.name)
            if device.platform != requested:
                yield variant, failed(f"round {launch.round}: on {device.platform}, {requested} was requested")
                break
        else:  # every launch ran on the requested platform
            yield variant, passed(f"on {requested}")
    if len(device_names) > 1:
        yield None, failed(f"launches ran on different devices: {', '.join(sorted(device_names))}")


CHECK = CaseCheck(
    name="wrong-device",
    threshold="the requested platform, one device model",
    reason="frameworks silently fall back to the CPU",
    evaluate=_evaluate,
    measured_only=True,
    remedy="install the framework's build for this device, or name another profile",
    observed=True,
)
