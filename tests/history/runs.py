"""Results of runs whose launches took what a test says they did."""

from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.api.case import CaseMeasurement
from accelbench.api.result import Certificate, Check, LaunchSummary, Result
from report import sample

USES = ("pytorch/eager", "jax/jit")
CLEAN = tuple(sample.passed(name, use) for name in ("parity", "non-finite", "throttled") for use in USES)


def scaled(factor: float) -> tuple[float, ...]:
    """Five launches that differ as little as they do on a quiet machine."""
    return tuple(0.001 * factor * wobble for wobble in (1.0, 1.001, 0.999, 1.002, 0.998))


def run(
    seconds: Mapping[str, Sequence[float]] | None = None,
    *,
    day: int = 1,
    checks: Sequence[Check] = CLEAN,
    fingerprint: Mapping[str, str] | None = None,
    parameters: Mapping[str, int] | None = None,
    swept: Mapping[str, int] | None = None,
    measurement: CaseMeasurement | None = None,
    **changes: Any,
) -> Result:
    """One case of `USES`, `seconds` a launch of each; everything else is as alike as can be."""
    times = dict.fromkeys(USES, scaled(1)) | dict(seconds or {})
    variants = tuple(
        sample.variant(use, f"{its[0]:.9f}").model_copy(
            update={
                "launches": tuple(
                    LaunchSummary(round=number, seconds=f"{value:.12f}", blocks=20, units_per_block=10)
                    for number, value in enumerate(its, start=1)
                ),
                "seconds": None,
            }
        )
        for use, its in times.items()
    )
    case = sample.case(
        tuple(times),
        parameters=dict(parameters or {"size": 512}),
        swept=dict(swept or {}),
        measurement=measurement or CaseMeasurement(rounds_min=5, rounds_max=5),
    )
    fields = {
        "case": case,
        "variants": variants,
        "comparisons": (),
        "certificate": Certificate(checks=tuple(checks)),
        "fingerprint": {**sample.FINGERPRINT, **(fingerprint or {})},
        "started": f"2026-11-{day:02}T09:00:00Z",
        "protocol": "steady",
        "rounds": min(map(len, times.values())),
    }
    return sample.result(**(fields | changes))
